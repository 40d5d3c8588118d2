"""Opening and creating graphs: the one place that chooses a backend, and loads it when needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import InvalidInput
from omnigraph.graph.graph import Graph
from omnigraph.model import arguments
from omnigraph.model.extras import extra_required
from omnigraph.settings import Durability, Settings

if TYPE_CHECKING:
    from omnigraph.catalog.migrations.upgrade import UpgradeReport
    from omnigraph.policy.decision import PolicyEvaluator


def init(
    uri: str | os.PathLike[str],
    schema: str,
    *,
    actor: str | None = None,
    durability: Durability | None = None,
    settings: Settings | None = None,
) -> Graph:
    """Create a graph and open it for writing.

    Args:
        uri: A local path, a ``file://`` or an ``s3://`` URI. The location must hold no graph yet.
        schema: The text of the schema (``.pg``).
        actor: The author of the first commit; otherwise the one of the settings.
        durability: As for ``open``.
        settings: As for ``open``.

    Returns:
        A handle on the new graph.

    Raises:
        GraphExists: The location holds a graph already.
        LanguageError: The schema text is invalid; every problem is listed.
        UnsupportedLocation: No graph can be stored at the URI.

    Example:
        >>> graph = omnigraph.init("cities", "node City { name: String @key }")
        >>> graph.branches.list()
        ['main']
    """
    from omnigraph.local.backend import LocalBackend

    return Graph(
        LocalBackend.create(
            arguments.path("uri", uri),
            arguments.text("schema", schema),
            actor=arguments.optional_text("actor", actor),
            settings=_settings(settings, durability),
        )
    )


def open(
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    blob_bases: Sequence[str] = (),
    actor: str | None = None,
    policy: str | os.PathLike[str] | None = None,
    durability: Durability | None = None,
    settings: Settings | None = None,
) -> Graph:
    """Open a graph.

    Opening for writing migrates an older storage format and resolves the unfinished writes of
    processes that died.

    Args:
        uri: The location of the graph: a local path, a ``file://`` or an ``s3://`` URI.
        read_only: Whether the handle refuses writes. Opening then changes nothing.
        blob_bases: URIs below which blobs in written data may refer to bytes outside the graph.
        actor: The author of commits that name none; otherwise the one of the settings.
        policy: The file of a policy. The handle then does what the policy allows the actor, and
            nothing without one. Needs the extra ``policy``.
        durability: ``"fsync"`` acknowledges a write on a local disk when it would survive a loss
            of power, ``"process"`` when it would survive a crash of the process. The default is
            the one of the settings.
        settings: All settings of this handle; those of the environment by default.

    Returns:
        A handle. Threads may share it.

    Raises:
        GraphNotFound: There is no graph at the location.
        InvalidInput: The policy cannot be read or is not valid.
        UnsupportedLocation: No graph can be stored at the URI.

    Example:
        >>> sorted(omnigraph.open(graph.uri, read_only=True).branches.list())
        ['dev', 'main']
    """
    from omnigraph.local.backend import LocalBackend

    chosen = _settings(settings, durability)
    author = arguments.optional_text("actor", actor)
    location = arguments.path("uri", uri)
    rules = None if policy is None else _read_policy(arguments.path("policy", policy))
    backend = LocalBackend.open(
        location,
        read_only=arguments.truth("read_only", read_only),
        blob_bases=arguments.texts("blob_bases", blob_bases),
        actor=author,
        settings=chosen,
    )
    if rules is None:
        return Graph(backend)
    with extra_required():
        from omnigraph.enforcement.backend import GovernedBackend

    return Graph(GovernedBackend(backend, rules, chosen.actor if author is None else author))


def _read_policy(path: str) -> PolicyEvaluator:
    """The policy of a file."""
    with extra_required():
        from omnigraph.policy.decision import PolicyEvaluator

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"cannot read the policy {path}: {error.strerror}", remedy="Check the file's path."
        ) from None
    return PolicyEvaluator.of_text(data, name=path)


def upgrade(
    uri: str | os.PathLike[str], *, apply: bool = False, settings: Settings | None = None
) -> UpgradeReport:
    """Bring a graph to the current format: an older one, or one of the Rust Omnigraph.

    Args:
        uri: Where the graph is: a local path, a ``file://`` or an ``s3://`` URI.
        apply: Whether to do it. Otherwise nothing is changed.
        settings: As for ``open``.

    Returns:
        The steps that each branch needs, or has taken.

    Raises:
        Contention: Another program is writing to a graph of the Rust Omnigraph.
        FormatUnsupported: The graph is too new or too old.

    Example:
        >>> fresh = omnigraph.init("fresh", "node City { name: String @key }")
        >>> omnigraph.upgrade(fresh.uri).needed
        False
    """
    from omnigraph.local.backend import LocalBackend

    return LocalBackend.upgrade_at(
        arguments.path("uri", uri),
        apply=arguments.truth("apply", apply),
        settings=_settings(settings, None),
    )


def _settings(given: Settings | None, durability: Durability | None) -> Settings:
    """The settings of a handle: those that are given, or those of the environment."""
    if given is not None and not isinstance(given, Settings):
        raise InvalidInput(
            f"`settings` must be an omnigraph.Settings, not {type(given).__name__}",
            remedy="Pass an omnigraph.Settings, or None to read the environment.",
        )
    chosen = Settings.from_environment() if given is None else given
    return chosen.with_durability(durability)
