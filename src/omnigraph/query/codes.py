"""Every code a query can fail with, as one table.

Owns the meaning of the codes: the reference documentation is made from it, and a test holds it
against what parser and checker report. A code is never given a second meaning; one that can no
longer occur stays reserved.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SYNTAX_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "P001": "A character that starts nothing.",
        "P002": "A string that is never closed.",
        "P003": "A comment that is never closed.",
        "P004": "An escape that strings do not have.",
        "P005": "Something else was expected here.",
        "P006": "The text is larger than a text may be.",
        "P007": "The text is nested deeper than it may be.",
        "P008": "The text is not Unicode.",
        "P009": "A number with more digits than any value has.",
        "P101": "There is no such function.",
        "P102": "A function has too few or too many arguments.",
        "P103": "A number or word that is no literal: negative, with an exponent, or `null`.",
        "P104": "An annotation that queries do not have, or one given twice.",
        "P105": "One query both reads and writes.",
        "P106": "A direction behind `nearest`, which has only one.",
    }
)

TYPE_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "T1": "A binding names something that is not a node type.",
        "T2": "A binding compares a property its type does not have.",
        "T3": "A literal does not fit the property it is compared with or assigned to.",
        "T4": "A traversal names an edge that does not exist.",
        "T5": "A variable's type is not at that end of the edge.",
        "T6": "A property of a variable that is not bound, or that its type does not have.",
        "T7": "Two values that cannot be compared, or a parameter that does not fit a property.",
        "T8": "An aggregate over values it cannot take.",
        "T9": "A `not` about nothing outside it; or, beside an aggregate, a column that is no key.",
        "T10": "A mutation of a type that does not exist, or without any assignment.",
        "T11": "A mutation uses a property its type does not have, or compares a Blob.",
        "T12": "An insert leaves out something required.",
        "T13": "One property is assigned twice.",
        "T14": "A mutation uses a variable that is not a parameter.",
        "T15": "Hop bounds that make no sense; or a `nearest` over anything but a fitting vector.",
        "T16": "An edge is updated.",
        "T17": "Ordering by `nearest` without a limit.",
        "T18": "Ordering by `nearest` together with ordering by a column.",
        "T19": "A `search` or `fuzzy` over or for something that is no text.",
        "T20": "A `match_text` or `bm25` over or for something that is no text.",
        "T21": "An `rrf` of anything but two rankings, with a wrong `k`, or without a limit.",
        "T22": "An undirected traversal of an edge that has a direction.",
        "T23": "An edge variable where it cannot stand.",
        "T24": "A Blob used as a value.",
        "T30": "A parameter with a reserved name.",
        "T31": "A parameter declared twice.",
        "T32": "A parameter of a type that does not exist.",
        "T33": "One variable bound to two node types.",
        "T34": "A variable that is neither bound nor a parameter.",
        "T35": "A list that mixes types or holds lists.",
        "T36": "An expression that cannot stand where it is.",
        "T37": "`$_` given a type.",
        "T38": "A literal that no value has: a number too large, a text that is no date.",
        "T39": "Ordering by a column that does not exist.",
        "T40": "Ordering by something that has no order, or that is not returned.",
        "T41": "A search that is not the first item of `order`, or is turned round.",
        "T42": "One mutation both deletes and inserts or updates.",
        "T43": "An update changes the key of a node.",
        "T44": "A query that reads called as a mutation, or the reverse.",
    }
)
