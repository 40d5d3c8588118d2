"""Constraints: the evaluator of schema rules, for every writer, in process and on Spark.

Arrow functions over whole columns. Stored entities are read through ``StoredTypes``, so that this
room needs neither tables nor files.
"""

from omnigraph.constraints.evaluate import evaluate
from omnigraph.constraints.image import Image, StoredTypes, TypeImage
from omnigraph.constraints.violations import (
    COUNT,
    FILE,
    LINE,
    NULLED,
    VIOLATIONS_SHOWN_MAX,
    Report,
    Violation,
)

__all__ = [
    "COUNT",
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
