"""Which graph a command works on, and which flags may name it.

Owns the capability matrix (what kind of command takes which flag) and addressing (from flags,
arguments and environment to one location). It must never open a graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from omnigraph.cli.flags import Flags
from omnigraph.cli.output import warn
from omnigraph.errors import InvalidInput, NotAvailable, UnsupportedLocation
from omnigraph.settings import CliSettings, StorageSettings
from omnigraph.storage.locations import Location, parse_location
from omnigraph.storage.objects.obstore_store import open_objects

Kind = Literal["data", "served", "direct (storage-native)", "cluster control", "local"]

# Flags are checked in this order; the first one that does not apply is reported.
FLAGS = ("server", "cluster", "graph", "store", "actor", "profile")

_MEANINGS = {
    "server": "--server addresses a graph behind a server",
    "cluster": "--cluster addresses the storage of a cluster",
    "graph": "--graph picks a graph of a server or a cluster",
    "store": "--store addresses a graph by its location",
    "actor": "--as names the actor of a write",
    "profile": "--profile picks a configured target",
}
_CLUSTER_GRAPH = re.compile(r"(?P<root>.+)/graphs/[^/]+\.omni")


@dataclass(frozen=True, slots=True)
class Verb:
    """A command: its name, its kind, and the flags that apply to it."""

    name: str
    kind: Kind
    takes: frozenset[str]
    remedy: str

    @property
    def writes(self) -> bool:
        """Whether the command may write to a graph, so that an interrupt reports the outcome."""
        return "actor" in self.takes or self.kind == "direct (storage-native)"

    def check(self, flags: Flags) -> None:
        """Refuse the first flag that does not apply, and an empty --as."""
        for flag in FLAGS:
            if getattr(flags, flag) is not None and flag not in self.takes:
                raise InvalidInput(
                    f"`{self.name}` is a {self.kind} command; {_MEANINGS[flag]} "
                    "and does not apply.",
                    remedy="Leave --as out: only writes have an actor."
                    if flag == "actor"
                    else self.remedy,
                )
        if flags.actor is not None and not flags.actor.strip():
            raise InvalidInput("--as is empty", remedy="Name the actor, or leave --as out.")


def data_verb(name: str, *, actor: bool = True) -> Verb:
    """A command that works on a graph at any location; ``actor``: whether it takes --as."""
    takes = {"server", "graph", "store", "profile"} | ({"actor"} if actor else set())
    return Verb(
        name,
        "data",
        frozenset(takes),
        "Address the graph with a URI, --store, --server or --profile.",
    )


def direct_verb(name: str, *, store: bool = False) -> Verb:
    """A command that works on storage, at the location of its argument or of ``--store``."""
    remedy = "Pass the location as the command's argument."
    takes = frozenset({"store", "profile"}) if store else frozenset[str]()
    return Verb(name, "direct (storage-native)", takes, remedy)


def control_verb(name: str, *, actor: bool = False) -> Verb:
    """A command that works on a cluster; ``actor``: whether it takes --as."""
    takes = frozenset({"actor"}) if actor else frozenset[str]()
    return Verb(name, "cluster control", takes, "Name the cluster's folder with --config.")


def local_verb(name: str) -> Verb:
    """A command that needs no graph."""
    return Verb(name, "local", frozenset(), "Leave the flag out: no graph is involved.")


def server_verb(name: str) -> Verb:
    """A command that serves the graphs of its arguments."""
    return Verb(name, "direct (storage-native)", frozenset(), "Pass the graphs as arguments.")


def address(flags: Flags, uri: str | None, settings: CliSettings) -> Location:
    """The one graph that the arguments, the flags or the environment name."""
    given = {"a URI": uri, "--store": flags.store}
    given |= {"--server": flags.server, "--cluster": flags.cluster}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidInput(f"{' and '.join(named)} both name a graph", remedy="Keep one of them.")
    if flags.server is not None:
        raise NotAvailable(
            "--server is not available: this version does not speak to servers yet",
            remedy="Address the graph's storage with a URI or --store.",
        )
    location = uri if uri is not None else flags.store
    if flags.graph is not None:
        raise InvalidInput(
            "--graph picks a graph of a server or a cluster, and none is addressed",
            remedy="Leave --graph out; the location names the graph already."
            if location is not None
            else "Name the server with --server.",
        )
    if location is not None:
        return parse_location(location)
    return _configured(flags, settings)


def _configured(flags: Flags, settings: CliSettings) -> Location:
    """The graph of a profile or of the defaults. Not supported yet: always raises."""
    profile = flags.profile or settings.profile
    if profile:
        raise NotAvailable(
            f"the profile {profile!r} cannot be used: this version has no profiles yet",
            remedy="Address the graph with a URI or --store.",
        )
    raise InvalidInput(
        "no graph addressed: neither the arguments nor the flags name one",
        remedy="Pass the graph's URI, or name it with --store.",
    )


def refuse_cluster_graph(location: Location, storage: StorageSettings) -> None:
    """Refuse a graph that belongs to a cluster: only the cluster creates and changes its graphs."""
    match = _CLUSTER_GRAPH.fullmatch(location.path)
    if match is None:
        return
    root = Location(location.scheme, location.container, match["root"])
    if open_objects(root, storage).exists("__cluster/state.json"):
        raise UnsupportedLocation(
            f"{location.uri} belongs to the cluster at {root.uri}",
            remedy="Declare the graph in the cluster's configuration and apply it.",
        )


def warn_of_unread_config(settings: CliSettings) -> None:
    """Warn that a configuration file exists and is ignored."""
    home = Path(settings.home or Path.home() / ".omnigraph")
    if (home / "config.yaml").is_file():
        warn(f"{home / 'config.yaml'} is not read: this version has no configuration file yet")
