"""English stemming: the Snowball "english" algorithm (Porter2).

Takes and returns lower-case words. Results are cached: a corpus has far fewer words than tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_VOWELS: Final = "aeiouy"
_DOUBLES: Final = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_LI_ENDINGS: Final = "cdeghkmnrt"
_WHOLE: Final = {
    "skis": "ski",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    "sky": "sky",
    "news": "news",
    "howe": "howe",
    "atlas": "atlas",
    "cosmos": "cosmos",
    "bias": "bias",
    "andes": "andes",
}
_AFTER_1A: Final = frozenset(
    ("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed")
)
_STEP_2: Final = (
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
    ("ogi", "og"),
    ("li", ""),
)
_STEP_3: Final = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ative", ""),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_STEP_4: Final = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti"),
    *("ous", "ive", "ize", "ion", "al", "er", "ic"),
)
_REGION: Final = re.compile(r"[aeiouy][^aeiouy]")
_PREFIXES: Final = ("gener", "commun", "arsen")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a word."""
    if len(word) <= 2:
        return word
    word = word.removeprefix("'")
    if word in _WHOLE:
        return _WHOLE[word]
    word = _mark_consonant_y(word)
    first, second = _regions(word)
    word = _step_1a(_step_0(word))
    if word in _AFTER_1A:
        return word
    word = _step_1c(_step_1b(word, first))
    word = _step_3(_step_2(word, first), first, second)
    return _step_5(_step_4(word, second), first, second).replace("Y", "y")


def _mark_consonant_y(word: str) -> str:
    letters = list(word)
    for at, letter in enumerate(letters):
        if letter == "y" and (at == 0 or letters[at - 1] in _VOWELS):
            letters[at] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    first = next((len(prefix) for prefix in _PREFIXES if word.startswith(prefix)), None)
    if first is None:
        found = _REGION.search(word)
        first = found.end() if found else len(word)
    found = _REGION.search(word, first)
    return first, found.end() if found else len(word)


def _is_short_syllable_end(word: str) -> bool:
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    return (
        len(word) > 2
        and word[-3] not in _VOWELS
        and word[-2] in _VOWELS
        and word[-1] not in _VOWELS
        and word[-1] not in "wxY"
    )


def _step_0(word: str) -> str:
    for suffix in ("'s'", "'s", "'"):
        if word.endswith(suffix):
            return word[: -len(suffix)]
    return word


def _step_1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith(("us", "ss")):
        return word
    if word.endswith("s") and any(letter in _VOWELS for letter in word[:-2]):
        return word[:-1]
    return word


def _step_1b(word: str, first: int) -> str:
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            return word[: -len(suffix)] + "ee" if len(word) - len(suffix) >= first else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(suffix):
            continue
        rest = word[: -len(suffix)]
        if not any(letter in _VOWELS for letter in rest):
            return word
        if rest.endswith(("at", "bl", "iz")):
            return rest + "e"
        if rest.endswith(_DOUBLES):
            return rest[:-1]
        if len(rest) <= first and _is_short_syllable_end(rest):
            return rest + "e"
        return rest
    return word


def _step_1c(word: str) -> str:
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        return word[:-1] + "i"
    return word


def _step_2(word: str, first: int) -> str:
    for suffix, other in _STEP_2:
        if not word.endswith(suffix):
            continue
        rest = word[: -len(suffix)]
        if len(rest) < first:
            return word
        if suffix == "ogi" and not rest.endswith("l"):
            return word
        if suffix == "li" and (not rest or rest[-1] not in _LI_ENDINGS):
            return word
        return rest + other
    return word


def _step_3(word: str, first: int, second: int) -> str:
    for suffix, other in _STEP_3:
        if not word.endswith(suffix):
            continue
        rest = word[: -len(suffix)]
        if len(rest) < (second if suffix == "ative" else first):
            return word
        return rest + other
    return word


def _step_4(word: str, second: int) -> str:
    for suffix in _STEP_4:
        if not word.endswith(suffix):
            continue
        rest = word[: -len(suffix)]
        if len(rest) < second or (suffix == "ion" and not rest.endswith(("s", "t"))):
            return word
        return rest
    return word


def _step_5(word: str, first: int, second: int) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if len(rest) >= second or (len(rest) >= first and not _is_short_syllable_end(rest)):
            return rest
    elif word.endswith("ll") and len(word) - 1 >= second:
        return word[:-1]
    return word
