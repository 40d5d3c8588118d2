"""Omnigraph: a graph lakehouse in Python.

A typed property graph whose every node and edge type is a Lance dataset, versioned as one thing.
Everything public is named here; every other module is private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph import errors

if TYPE_CHECKING:
    from omnigraph.graph.handle import Graph, init, open

__version__ = "0.1.0"
__all__ = ["Graph", "__version__", "errors", "init", "open"]

# Loaded on first use (PEP 562), so that `import omnigraph` stays light: ADR 25.
_MODULES = {
    "Graph": "omnigraph.graph.handle",
    "init": "omnigraph.graph.handle",
    "open": "omnigraph.graph.handle",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
