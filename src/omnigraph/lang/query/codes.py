"""Every code a query can fail with, besides those that both languages share.

Owns the meaning of the codes: the reference documentation is made from it, and a test holds it
against what parser and checker report. A code is never given a second meaning; one that can no
longer occur stays reserved: T16, an update of an edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PARSE_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "P101": "there is no such function",
        "P102": "a function has too few or too many arguments",
        "P103": "digits that are no number, or a negative number of rows or hops",
        "P104": "an annotation that queries do not have, or one given twice",
        "P105": "one query both reads and writes",
        "P106": "a direction behind `nearest`, which has only one",
        "P107": "a reserved word where an operand must stand",
        "P108": "a comparison of a comparison without parentheses",
    }
)

TYPE_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "T1": "a binding names something that is not a node type",
        "T2": "a binding compares a property its type does not have",
        "T3": "a literal does not fit the property it is compared with or assigned to",
        "T4": "a traversal names an edge that does not exist",
        "T5": "a variable's type is not at that end of the edge",
        "T6": "a property of a variable that is not bound, or that its type does not have",
        "T7": "two values that cannot be compared, or a parameter that does not fit a property",
        "T8": "an aggregate over values it cannot take",
        "T9": "a `not` about nothing outside it; or, beside an aggregate, a column that is no key",
        "T10": "a mutation of a type that does not exist, or without any assignment",
        "T11": "a mutation uses a property its type does not have, or compares a Blob",
        "T12": "an insert leaves out something required",
        "T13": "one property is assigned twice",
        "T14": "a mutation uses a variable that is not a parameter",
        "T15": "hop bounds that make no sense; or a `nearest` over anything but a fitting vector",
        "T17": "ordering by `nearest` without a limit",
        "T18": "ordering by `nearest` together with ordering by a column",
        "T19": "a `search` or `fuzzy` over or for something that is no text",
        "T20": "a `match_text` or `bm25` over or for something that is no text",
        "T21": "an `rrf` of anything but two rankings, with a wrong `k`, or without a limit",
        "T22": "an undirected traversal of an edge that has a direction",
        "T23": "an edge variable where it cannot stand",
        "T24": "a Blob used as a value",
        "T30": "a parameter with a reserved name",
        "T31": "a parameter declared twice",
        "T32": "a parameter of a type that does not exist",
        "T33": "one variable bound to two node types",
        "T34": "a variable that is neither bound nor a parameter",
        "T35": "a list that mixes types or holds lists",
        "T36": "an expression that cannot stand where it is",
        "T37": "`$_` given a type",
        "T38": "a literal that no value has: a number too large, a text that is no date",
        "T39": "ordering by a column that does not exist",
        "T40": "ordering by something that has no order, or that is not returned",
        "T41": "a search that is not the first item of `order`, or is turned round",
        "T42": "one mutation both deletes and inserts or updates",
        "T43": "an update changes the key of a node or an end of an edge",
        "T44": "a query that reads called as a mutation, or the reverse",
        "T60": "a condition that is neither true nor false",
        "T61": "arithmetic on something else than two numbers of one type, or `/` on whole numbers",
        "T62": "a function of values that it does not take",
        "T63": "a `case` whose branches have different types",
        "T64": "an aggregate or a search in a mutation",
        "T65": "a property in an insert, which has no entity to read it from",
        "T66": "a column that needs a name",
        "T67": "a `null` without anything that gives it a type",
        "T68": "a Bool literal in a mutation of a type with a property called `true` or `false`",
        "T69": "a `distinct` result with an aggregate",
        "T70": "a number of rows that is no whole number",
    }
)
