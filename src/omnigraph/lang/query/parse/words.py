"""The words and operators of the query language, with their meanings.

Owns what the reference documentation and editors list. Six words are reserved; each other one has
its meaning only where the grammar asks for it, and is free as a name elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "query": "Starts a query: name, parameters, annotations, body.",
        "match": "The pattern to find, as clauses in braces.",
        "not": "Before a block: clauses that must have no match. Else the opposite of a condition.",
        "and": "Both conditions hold.",
        "or": "One of the conditions holds.",
        "is": "Starts a null test: `is null`, `is not null`.",
        "null": "No value.",
        "in": "A list has this item.",
        "case": "Chooses a value: `case { when condition then value else value }`.",
        "when": "A branch of a `case`.",
        "then": "The value of a branch.",
        "else": "The value where no branch holds; null when left out.",
        "return": "The columns of the answer.",
        "distinct": "Answers each row once.",
        "as": "Names a column.",
        "order": "What rows are ordered by.",
        "asc": "Smallest first; the default.",
        "desc": "Largest first.",
        "nulls": "Where rows without a value come: `nulls first` or `nulls last`.",
        "first": "Before all values.",
        "last": "After all values.",
        "limit": "How many rows are answered at most.",
        "offset": "How many rows are left out before.",
        "insert": "Adds a node or an edge; a node whose key exists is replaced.",
        "update": "Changes properties of nodes.",
        "set": "The assignments of an update.",
        "delete": "Removes nodes with their edges, or edges.",
        "where": "The condition that selects what is updated or deleted.",
        "true": "A Bool literal.",
        "false": "A Bool literal.",
        "date": 'A Date literal: `date("2024-02-29")`.',
        "datetime": 'A DateTime literal: `datetime("2024-02-29T12:00:00Z")`.',
        "@description": "What the query is for; people and tools read it.",
        "@instruction": "How the query is to be used; agents read it.",
    }
)

RESERVED: Final = frozenset({"and", "or", "not", "is", "null", "in"})
"""Words that are never a bare operand, and never an edge unless quoted."""

OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "=": "Equal.",
        "!=": "Not equal; unknown when a side is null, like every comparison.",
        "<": "Less: numbers by value, strings by their UTF-8 bytes, `false` before `true`.",
        "<=": "Less or equal.",
        ">": "Greater.",
        ">=": "Greater or equal.",
        "contains": "A list has this item; or a string has this part, exactly as written.",
        "starts_with": "A string has this beginning, exactly as written.",
        "in": "The list on the right has the item on the left.",
        "+": "Sum of two numbers of one type.",
        "-": "Difference, or the opposite of a number.",
        "*": "Product.",
        "/": "Quotient of two floats. Whole numbers are cast with `to_float` first.",
        "%": "Remainder, with the sign of the left side.",
    }
)
