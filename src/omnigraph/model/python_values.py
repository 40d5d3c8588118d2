"""Converts Python values in parameters, batches and loaded mappings to JSON values.

NumPy scalars and arrays, dates, instants, decimals and UUIDs become the JSON value of the same
meaning; everything else stays as it is, and the property's type refuses it. numpy is not imported
here: without it, no value can be a numpy value.
"""

from __future__ import annotations

import sys
from array import array
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from omnigraph.errors import InvalidValue
from omnigraph.model.calendar import format_date, format_instant

JSON_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def plain_value(value: Any) -> Any:
    """The JSON value of the same meaning as a Python value; ``InvalidValue`` when there is none.

    A datetime must have a time zone; digits below a millisecond are cut off. ``numpy.datetime64``
    has no zone and is read as UTC. A decimal that a 64-bit float cannot represent is refused.
    """
    kind = type(value)
    if kind in JSON_SCALARS:
        return value
    if kind is list or kind is tuple:
        if all(type(item) in JSON_SCALARS for item in value):
            return value
        try:
            return [plain_value(item) for item in value]
        except RecursionError:
            raise InvalidValue(
                "a list is nested too deeply", remedy="Pass a list without nested lists."
            ) from None
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, array):
        return value.tolist()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        return _numpy(numpy, value)
    return value


def _instant(value: datetime) -> str | None:
    if value != value:  # pandas.NaT, the missing instant
        return None
    if value.utcoffset() is None:
        raise InvalidValue(
            f"{value.isoformat()} has no time zone",
            remedy="Add a time zone, for example value.replace(tzinfo=datetime.UTC).",
        )
    return format_instant((value - _EPOCH) // _MILLISECOND)


def _decimal(value: Decimal) -> int | float:
    if not value.is_finite():
        raise InvalidValue(f"{value} is not a finite number")
    if value.adjusted() <= 40 and value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    if Decimal(repr(nearest)) != value:
        raise InvalidValue(
            f"{str(value)[:40]} has more digits than a 64-bit float holds",
            remedy="Round it, or store it as a String.",
        )
    return nearest


def _numpy(numpy: Any, value: Any) -> Any:
    if isinstance(value, numpy.ndarray):
        if value.dtype.kind in "biuU" or value.dtype in ("float16", "float32", "float64"):
            return value.tolist()
        if value.ndim == 0:
            return plain_value(value[()])
        return [plain_value(item) for item in value]
    if isinstance(value, numpy.datetime64):
        return _datetime64(numpy, value)
    if isinstance(value, numpy.floating):
        nearest = float(value)
        if nearest != value and value == value:
            raise InvalidValue(f"{value} does not fit into a 64-bit float")
        return nearest
    if isinstance(value, numpy.bool_ | numpy.integer | numpy.str_):
        return value.item()
    return value


def _datetime64(numpy: Any, value: Any) -> str | None:
    if numpy.isnat(value):
        return None
    unit = numpy.datetime_data(value.dtype)[0]
    if unit in ("Y", "M", "W", "D"):
        return format_date(int(value.astype("datetime64[D]").astype("int64")))
    return format_instant(int(value.astype("datetime64[ms]").astype("int64")))
