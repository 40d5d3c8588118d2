"""Constraints: one evaluator, derived from the catalog, for every writer on every engine.

Arrow functions over whole columns. What is stored is asked through ``StoredTypes``, so that this
room needs neither tables nor files.
"""

from omnigraph.constraints.evaluate import evaluate
from omnigraph.constraints.image import Image, StoredTypes, TypeImage
from omnigraph.constraints.violations import (
    FILE,
    LINE,
    NULLED,
    VIOLATIONS_SHOWN_MAX,
    Report,
    Violation,
)

__all__ = [
    "FILE",
    "LINE",
    "NULLED",
    "VIOLATIONS_SHOWN_MAX",
    "Image",
    "Report",
    "StoredTypes",
    "TypeImage",
    "Violation",
    "evaluate",
]
