"""Dates and instants as text and as integers.

A date is a number of days, an instant a number of milliseconds, both since 1970-01-01 (UTC). The
arithmetic is the proleptic Gregorian calendar without limits, because a stored integer may lie far
outside the years that the standard library knows. Years beyond four digits are written with a sign
(ISO 8601) and can be read back. A time outside the range of its column (32 bits of days, 64 of
milliseconds) is refused.
"""

from __future__ import annotations

import re
from typing import Final

DAY_MS: Final = 86_400_000

DAYS_MAX: Final = 2**31
MILLISECONDS_MAX: Final = 2**63

_YEAR: Final = r"(?:[0-9]{4}|[+-][0-9]{4,9})"
_DATE: Final = re.compile(rf"({_YEAR})-([0-9]{{2}})-([0-9]{{2}})")
_INSTANT: Final = re.compile(
    rf"({_YEAR}-[0-9]{{2}}-[0-9]{{2}})"
    r"[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> int | None:
    """``YYYY-MM-DD`` as days; None when the text is not a date."""
    days = _parse_days(text)
    return days if days is not None and -DAYS_MAX <= days < DAYS_MAX else None


def _parse_days(text: str) -> int | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        return None
    return _days(year, month, day)


def format_date(days: int) -> str:
    """Days as ``YYYY-MM-DD``; years beyond four digits carry a sign."""
    year, month, day = _civil(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day:02d}"


def parse_instant(text: str) -> int | None:
    """An RFC 3339 instant as milliseconds, finer fractions cut off; None when it is invalid."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    days = _parse_days(match[1])
    hour, minute, second = int(match[2]), int(match[3]), int(match[4])
    if days is None or hour > 23 or minute > 59 or second > 60:
        return None
    offset = 0
    if match[6]:
        offset_hour, offset_minute = int(match[7]), int(match[8])
        if offset_hour > 23 or offset_minute > 59:
            return None
        offset = (offset_hour * 60 + offset_minute) * (-1 if match[6] == "-" else 1)
    millis = int(((match[5] or "") + "000")[:3])
    found = days * DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1000 + millis
    return found if -MILLISECONDS_MAX <= found < MILLISECONDS_MAX else None


def format_instant(millis: int) -> str:
    """Milliseconds as ``YYYY-MM-DDTHH:MM:SS.mmmZ``, always with three decimals."""
    days, rest = divmod(millis, DAY_MS)
    seconds, fraction = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{format_date(days)}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:03d}Z"


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_DAYS[month - 1]


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01, counting years from March so that leap days come last."""
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """The inverse of ``_days``."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day
