"""Omnigraph: a graph lakehouse in Python.

A typed property graph whose every node and edge type is a Lance dataset, versioned as one thing.
Everything public is named here; every other module is private.
"""

from typing import TYPE_CHECKING, Any

from omnigraph import errors

if TYPE_CHECKING:
    from omnigraph.graph import Graph, init, open

__version__ = "0.1.0"
__all__ = ["Graph", "__version__", "errors", "init", "open"]


def __getattr__(name: str) -> Any:
    """Load the engine on first use: `omnigraph --help` and the languages do without it."""
    if name in {"Graph", "init", "open"}:
        from omnigraph import graph

        return getattr(graph, name)
    raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
