"""The codes of findings that both languages share, and what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SYNTAX_CODES: Final[Mapping[str, str]] = {
    "P001": "a character that starts no word, number, string or operator",
    "P002": "a string that is never closed",
    "P003": "a `/*` comment that is never closed",
    "P004": 'an escape in a string other than `\\"`, `\\\\`, `\\n`, `\\r`, `\\t`',
    "P005": "something else was expected here; the finding says what",
    "P006": "a text of more than one mebibyte",
    "P007": "nested more deeply than the language allows",
    "P008": "a text that is not valid Unicode",
    "P009": "a number of more than 300 characters",
}
