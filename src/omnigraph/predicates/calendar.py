"""Functions of dates and instants on columns: adding, differences, starts of units.

Computes in milliseconds since 1970 in UTC, on the proleptic Gregorian calendar, for the years 1 to
9999; anything outside fails with ``CalculationFailed``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CalculationFailed
from omnigraph.model.calendar import DAY_MS
from omnigraph.predicates.values import Ints, Mask

YEARS: Final = (-62_135_596_800_000, 253_402_300_799_999)
"""The years 1 to 9999 in milliseconds."""
UNITS: Final = {
    "week": 7 * DAY_MS,
    "day": DAY_MS,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
}
MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
_MONDAY: Final = 4 * DAY_MS
"""1970-01-05, the first Monday."""
_PARTS: Final[dict[str, Callable[[Any], Any]]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "day_of_week": lambda times: pc.day_of_week(times, count_from_zero=False),
    "day_of_year": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
PARTS: Final = tuple(_PARTS)
"""What ``date_part`` can take out of a time."""


def part_of(part: str, column: pa.Array) -> pa.Array:
    """A part of every time, such as its year."""
    times, valid = milliseconds(column)
    found = pa.array(times, mask=~valid).view(pa.timestamp("ms"))
    return _PARTS[part](found)


def milliseconds(column: pa.Array) -> tuple[Ints, Mask]:
    """Dates or instants as milliseconds, and which of them are not null."""
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_date32(column.type):
        found = column.view(pa.int32()).fill_null(0).to_numpy().astype(np.int64) * DAY_MS
    else:
        found = column.view(pa.int64()).fill_null(0).to_numpy()
    _require_years(found[valid])
    return np.where(valid, found, 0), valid


def _require_years(times: Ints) -> None:
    if not ((times >= YEARS[0]) & (times <= YEARS[1])).all():
        raise CalculationFailed("a time lies outside the years 1 to 9999")


def _as_column(times: Ints, valid: Mask, like: pa.DataType) -> pa.Array:
    _require_years(times[valid])
    if pa.types.is_date32(like):
        return pa.array((times // DAY_MS).astype(np.int32), mask=~valid).view(pa.date32())
    return pa.array(times, mask=~valid).view(pa.date64())


def _months(times: Ints) -> tuple[Ints, Ints]:
    """Months since 1970, and the milliseconds of the time within its month."""
    months = times.astype("M8[ms]").astype("M8[M]")
    return months.astype(np.int64), times - months.astype("M8[ms]").astype(np.int64)


def _start_of(months: Ints) -> Ints:
    return months.astype("M8[M]").astype("M8[ms]").astype(np.int64)


def truncated(unit: str, column: pa.Array) -> pa.Array:
    """The start of the year, quarter, month, week (its Monday), day, hour, minute or second."""
    times, valid = milliseconds(column)
    if unit in MONTHS:
        found = _start_of(_months(times)[0] // MONTHS[unit] * MONTHS[unit])
    else:
        first = _MONDAY if unit == "week" else 0
        found = (times - first) // UNITS[unit] * UNITS[unit] + first
    return _as_column(found, valid, column.type)


def added(unit: str, column: pa.Array, amounts: pa.Array) -> pa.Array:
    """The time so many units later; a day that its month does not have is the month's last."""
    times, valid = milliseconds(column)
    known = np.asarray(amounts.is_valid().to_numpy(zero_copy_only=False))
    valid = valid & known
    count = amounts.cast(pa.int64()).fill_null(0).to_numpy()
    size = MONTHS.get(unit) or UNITS[unit]
    if (np.abs(count[valid]) > (1 << 62) // max(size, DAY_MS) // 16).any():
        raise CalculationFailed("a time lies outside the years 1 to 9999")
    count = np.where(valid, count, 0)
    if unit in UNITS:
        return _as_column(times + count * size, valid, column.type)
    months, within = _months(times)
    months = np.clip(months + count * size, -24_000, 120_000)
    start = _start_of(months)
    days = np.minimum(within // DAY_MS, (_start_of(months + 1) - start) // DAY_MS - 1)
    return _as_column(start + days * DAY_MS + within % DAY_MS, valid, column.type)


def difference(unit: str, column: pa.Array, until: pa.Array) -> pa.Array:
    """How many whole units lie between two times; negative when the second comes first."""
    (start, known), (end, there) = milliseconds(column), milliseconds(until)
    sign = np.where(end >= start, 1, -1)
    low, high = np.minimum(start, end), np.maximum(start, end)
    if unit in UNITS:
        found = (high - low) // UNITS[unit]
    else:
        (first, rest), (last, more) = _months(low), _months(high)
        found = (last - first - (more < rest)) // MONTHS[unit]
    return pa.array(sign * found, mask=~(known & there))
