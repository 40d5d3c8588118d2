"""What is behind a handle: for tests of storage, recovery and caches, which no public call shows.

The one place where tests reach below ``Graph``. Tests of what users see do not need it.
"""

from __future__ import annotations

from typing import cast

from omnigraph import Graph
from omnigraph.catalog.repository import Repository
from omnigraph.local.backend import LocalBackend
from omnigraph.local.context import GraphContext
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.transaction.transaction import WriteTransaction


def backend_of(graph: Graph) -> LocalBackend:
    """The backend of a handle on a local graph."""
    return cast("LocalBackend", graph._backend)


def context_of(graph: Graph) -> GraphContext:
    """What the services of the backend share."""
    return backend_of(graph).context


def repository_of(graph: Graph) -> Repository:
    """The storage that the handle itself uses, with its caches."""
    return context_of(graph).repository


def transaction_of(graph: Graph) -> WriteTransaction:
    """The write transaction that the handle itself uses."""
    return context_of(graph).transaction


def graph_on(repository: Repository, *, read_only: bool = False) -> Graph:
    """A handle on storage that a test has made: with faults, or with a clock of its own."""
    context = GraphContext.of(repository, read_only=read_only, blobs=BlobPolicy(), actor=None)
    return Graph(LocalBackend(context))
