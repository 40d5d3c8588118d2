"""The words and operators of the query language, with their meanings.

Owns what the reference documentation and editors list. No word is reserved: each has its meaning
only where the grammar asks for it, and is free as a name elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "query": "Starts a query: name, parameters, annotations, body.",
        "match": "The pattern to find, as clauses in braces.",
        "not": "A block of clauses that must have no match.",
        "return": "The columns of the answer.",
        "as": "Names a column.",
        "order": "What rows are ordered by.",
        "asc": "Smallest first; the default.",
        "desc": "Largest first.",
        "limit": "How many rows are answered at most.",
        "insert": "Adds a node or an edge; a node whose key exists is replaced.",
        "update": "Changes properties of nodes.",
        "set": "The assignments of an update.",
        "delete": "Removes nodes with their edges, or edges.",
        "where": "The comparison that selects what is updated or deleted.",
        "true": "A Bool literal.",
        "false": "A Bool literal.",
        "date": 'A Date literal: `date("2024-02-29")`.',
        "datetime": 'A DateTime literal: `datetime("2024-02-29T12:00:00Z")`.',
        "@description": "What the query is for; people and tools read it.",
        "@instruction": "How the query is to be used; agents read it.",
    }
)

OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "=": "Equal.",
        "!=": "Not equal; false when a side is null, like every comparison.",
        "<": "Less: numbers by value, strings by their UTF-8 bytes, `false` before `true`.",
        "<=": "Less or equal.",
        ">": "Greater.",
        ">=": "Greater or equal.",
        "contains": "A list has this item; or a string has this part, exactly as written.",
        "starts_with": "A string has this beginning, exactly as written.",
    }
)
