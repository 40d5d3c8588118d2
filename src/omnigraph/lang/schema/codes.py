"""The codes of the schema language: refusals of a text, and refusals of a change.

Codes are stable. A code that no longer occurs stays here as reserved and is never reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SCHEMA_CODES: Final[Mapping[str, str]] = {
    "S6": "a constraint with parentheses stands in a header instead of a body",
    "S7": "an interface with a constraint in its body or an annotation of its own",
    "S10": "a vector of no dimensions, or of more than 2147483647",
    "S11": "a list of blobs, enums, vectors or lists",
    "S12": "an enum member given twice",
    "S14": "a property name that the storage uses itself",
    "S15": "a property called `id`, or `src`, `dst`, `from`, `to` on an edge",
    "S18": "`@embed` on something else than a vector, without a usable source, or given twice",
    "S19": "`@key`, `@unique` or `@index` given twice on a property, or given on a type",
    "S20": "a second key, or a key member that is missing, nullable, a list, a vector or a blob",
    "S21": "a `@unique` member that is missing, a list, a vector or a blob",
    "S22": "an `@index` member that is missing or a blob, or `@index` after a list property",
    "S23": "a `@range` on something else than one number, without arguments, or that fits nothing",
    "S24": "a `@check` on something else than one string, or with a pattern that cannot be used",
    "S25": "a `@card` out of place, without bounds, too large, or with its bounds swapped",
    "S26": "`@key`, `@range`, `@check` or `@embed` on an edge",
    "S30": "a property whose type differs from the one its interface declares",
    "S31": "two interfaces that disagree about a property",
    "S32": "`implements` names an interface that is not declared",
    "S40": "a type, or a property of a type, declared twice",
    "S41": "an edge starts or ends at something that is not a declared node type",
    "S50": "two edge types whose names differ only in the case of letters",
    "S60": "`@description` or `@instruction` blank, given twice, or out of place",
    "S61": "`@rename_from` blank, given twice, or with more than one value; `@rename_member` on"
    " something else than an enum, or without an old and a new name",
    "S62": "`@default` without one value that fits, given twice, or on a property that may be null",
    "S63": "`@vector` on something else than a vector, given twice, or with an unknown metric or"
    " setting",
    "V3": "`@rename_from` or `@rename_member` that names nothing usable; as information: one"
    " without effect",
}


@dataclass(frozen=True, slots=True)
class ChangeCode:
    """A code of a schema change. ``reserved`` codes do not occur at present."""

    tier: str
    meaning: str
    reserved: bool


CHANGE_CODES: Final[Mapping[str, ChangeCode]] = {
    "OG-DS-101": ChangeCode("destructive", "the graph is dropped", True),
    "OG-DS-102": ChangeCode("destructive", "a node type with data is dropped", True),
    "OG-DS-103": ChangeCode("destructive", "an edge type with data is dropped", True),
    "OG-DS-104": ChangeCode("destructive", "a property is dropped", True),
    "OG-DS-105": ChangeCode("destructive", "a vector property is dropped", True),
    "OG-MF-103": ChangeCode("validated", "a new required property has no values", False),
    "OG-MF-104": ChangeCode("validated", "a nullable property becomes required", True),
    "OG-MF-106": ChangeCode("destructive", "the type of a property changes", False),
}
