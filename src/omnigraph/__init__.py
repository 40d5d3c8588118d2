"""Omnigraph: a graph lakehouse in Python.

A typed property graph whose every node and edge type is a Lance dataset, versioned as one thing.
Everything public is named here; every other module is private.
"""

from typing import TYPE_CHECKING

from omnigraph import errors, lazy

if TYPE_CHECKING:
    from omnigraph.graph import Graph, init, open

__version__ = "0.1.0"
__all__ = ["Graph", "__version__", "errors", "init", "open"]

# `omnigraph --help` and the languages do without the engine.
__getattr__ = lazy.on_first_use(__name__, dict.fromkeys(("Graph", "init", "open"), "graph"))
