"""Checks that the regular expression of a ``@check`` has the linear-time syntax of RE2.

This room does not import the engine that runs patterns, so the syntax is parsed here, a little more
strictly than by the engine: every accepted pattern compiles there. Spellings on which engines
disagree (a lone ``{``, an unescaped ``[`` inside a class) are refused.
"""

from __future__ import annotations

from typing import Final

PATTERN_CHARS_MAX: Final = 2_000
PATTERN_NESTING_MAX: Final = 50
REPEAT_MAX: Final = 1_000
"""The largest repetition count of the engine, also for the product of nested counts."""

PATTERN_COST_MAX: Final = 60_000
"""The limit of the compiled size: about one unit per character, times its repetitions."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FLAGS: Final = frozenset("imsU")
_CLASS_ESCAPES: Final = frozenset("dDsSwW")
_CONTROL_ESCAPES: Final = dict(zip("aftnrv", "\a\f\t\n\r\v", strict=True))
_POSITIONS: Final = frozenset("bBAz")
_POSIX: Final = _words(
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit "
)
_CATEGORIES: Final = _words(
    "C Cc Cf Co L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm "
    "So Z Zl Zp Zs "
)
_SCRIPTS: Final = _words(
    "Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Hangul "
    "Han Hebrew Hiragana Katakana Khmer Lao Latin Mongolian Tamil Telugu Thai Tibetan "
)
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class _Bad(Exception):
    """The reason why a pattern cannot be used."""


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    if len(pattern) > PATTERN_CHARS_MAX:
        return f"it has more than {PATTERN_CHARS_MAX} characters"
    reader = _PatternReader(pattern)
    try:
        cost, _ = reader.alternatives(0)
        if reader.at < len(pattern):
            return "`)` without `(`"
    except _Bad as problem:
        return str(problem)
    if cost > PATTERN_COST_MAX:
        return "its repetitions make it too large"
    return None


class _PatternReader:
    """Reads a pattern once, left to right. Methods return (cost, largest nested repetition)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.names: set[str] = set()

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.text[at] if at < len(self.text) else ""

    def take(self, what: str) -> str:
        char = self.peek()
        if not char:
            raise _Bad(f"{what} is not finished")
        self.at += 1
        return char

    def alternatives(self, depth: int) -> tuple[int, int]:
        if depth > PATTERN_NESTING_MAX:
            raise _Bad(f"it is nested more than {PATTERN_NESTING_MAX} levels deep")
        cost, largest = 1, 1
        while (char := self.peek()) and char != ")":
            if char == "|":
                self.at += 1
                cost += 1
                continue
            item_cost, item_repeat = self.atom(depth)
            times = self.repetition()
            if times > 1:
                item_repeat *= times
                if item_repeat > REPEAT_MAX:
                    raise _Bad(f"it repeats something more than {REPEAT_MAX} times")
            cost += item_cost * times + 1
            largest = max(largest, item_repeat)
        return cost, largest

    def atom(self, depth: int) -> tuple[int, int]:
        char = self.take("the pattern")
        if char == "(":
            return self.group(depth)
        if char == "[":
            return self.bracket(), 1
        if char == "\\":
            return self.escape(), 1
        if char in "*+?":
            raise _Bad(f"`{char}` has nothing to repeat")
        if char == "{":
            raise _Bad("`{` must follow what it repeats; write `\\{` for the character")
        return (12 if char == "." else 2 if char.isascii() else 4), 1

    def repetition(self) -> int:
        """The number of copies that a quantifier makes; 1 without a count."""
        char = self.peek()
        if not char or char not in "*+?{":
            return 1
        times = 1
        self.at += 1
        if char == "{":
            times = self.count()
        if self.peek() == "?":
            self.at += 1
        if self.peek() and self.peek() in "*+?{":
            raise _Bad("two repetitions follow each other")
        return times

    def count(self) -> int:
        low = self.digits()
        high: int | None = low
        if self.peek() == ",":
            self.at += 1
            high = self.digits() if self.peek() != "}" else None
        if self.take("a repetition") != "}":
            raise _Bad("a repetition is written `{2}`, `{2,}` or `{2,5}`")
        if high is not None and high < low:
            raise _Bad("a repetition has its bounds the wrong way round")
        return max(low, high or 0, 1)

    def digits(self) -> int:
        start = self.at
        while self.peek() and self.peek() in "0123456789":
            self.at += 1
        text = self.text[start : self.at]
        if not text or len(text) > 4 or int(text) > REPEAT_MAX:
            raise _Bad(f"a repetition needs counts between 0 and {REPEAT_MAX}")
        return int(text)

    def group(self, depth: int) -> tuple[int, int]:
        if self.peek() == "?":
            self.at += 1
            if self.group_start():
                return self.no_repetition_next()
        inner = self.alternatives(depth + 1)
        if self.take("a group") != ")":
            raise _Bad("a group is not closed")
        return inner[0] + 2, inner[1]

    def group_start(self) -> bool:
        """Read what follows ``(?``; True if the group only sets flags and is closed."""
        char = self.take("a group")
        if char in "=!" or (char == "<" and self.peek() in ("=", "!")):
            raise _Bad("look-around is not supported")
        if char == "P" and self.peek() == "<":
            self.at += 1
            self.group_name()
            return False
        negated, any_flag = False, False
        while char not in ":)":
            if char == "-" and not negated:
                negated, any_flag = True, False
            elif char in _FLAGS:
                any_flag = True
            else:
                raise _Bad(f"`(?{char}` is not supported")
            char = self.take("a group")
        if (negated or char == ")") and not any_flag:
            raise _Bad("a group sets no flag")
        return char == ")"

    def group_name(self) -> None:
        start = self.at
        while self.take("a group name") != ">":
            pass
        name = self.text[start : self.at - 1]
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise _Bad("a group name is made of letters, digits and `_`")
        if name in self.names:
            raise _Bad(f"the group name `{name}` is used twice")
        self.names.add(name)

    def no_repetition_next(self) -> tuple[int, int]:
        if self.peek() and self.peek() in "*+?{":
            raise _Bad(f"`{self.peek()}` has nothing to repeat")
        return 0, 1

    def escape(self) -> int:
        char = self.take("an escape")
        if char in _POSITIONS:
            return 1
        if char in _CLASS_ESCAPES:
            return 10
        if char in "pP":
            self.category()
            return 1_000
        self.character(char)
        return 4

    def category(self) -> None:
        name = self.take("a character category")
        if name == "{":
            start = self.at
            while self.take("a character category") != "}":
                pass
            name = self.text[start : self.at - 1]
        if name not in _CATEGORIES and name not in _SCRIPTS:
            raise _Bad(f"the character category `{name[:20]}` is not known")

    def character(self, char: str) -> str:
        """The character of an escape sequence."""
        if char in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[char]
        if char == "x":
            return self.hex()
        if char in "0123456789":
            raise _Bad("back-references and octal escapes are not supported")
        if not char.isascii() or char.isalpha() or char < " " or char == "\x7f":
            raise _Bad(f"the escape `\\{char}` is not supported")
        return char

    def hex(self) -> str:
        digits = ""
        if self.peek() == "{":
            self.at += 1
            while (char := self.take("an escape")) != "}":
                digits += char
        else:
            digits = self.take("an escape") + self.take("an escape")
        if not digits or len(digits) > 6 or not _HEX.issuperset(digits):
            raise _Bad("`\\x` takes two hexadecimal digits, or some in braces")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise _Bad(f"`\\x{{{digits}}}` is not a character")
        return chr(code)

    def bracket(self) -> int:
        """A character class, after its ``[``."""
        cost = 2
        if self.peek() == "^":
            self.at += 1
            cost = 30
        first = True
        while (char := self.take("a character class")) != "]" or first:
            first = False
            low, item_cost = self.member(char)
            cost += item_cost
            if self.peek() == "-" and self.peek(1) not in ("]", ""):
                self.at += 1
                high, high_cost = self.member(self.take("a character class"))
                if low is None or high is None or high < low:
                    raise _Bad("a range in a character class has no valid bounds")
                cost += high_cost + (0 if high.isascii() else 30)
        return cost

    def member(self, char: str) -> tuple[str | None, int]:
        """One member of a class: its character, or None if it stands for several."""
        if char == "[":
            self.posix()
            return None, 10
        if char != "\\":
            return char, 4
        escaped = self.take("an escape")
        if escaped in _CLASS_ESCAPES:
            return None, 10
        if escaped in "pP":
            self.category()
            return None, 1_000
        return self.character(escaped), 4

    def posix(self) -> None:
        end = self.text.find(":]", self.at)
        name = self.text[self.at + 1 : end] if self.peek() == ":" and end > 0 else ""
        if name.removeprefix("^") not in _POSIX:
            raise _Bad("write `\\[` for the character `[` inside a character class")
        self.at = end + 2
