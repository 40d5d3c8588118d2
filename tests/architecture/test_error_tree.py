"""Every error has a code, a status and a remedy, and is drawn in the tree that documents it."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
import re
from importlib import import_module

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.errors import OmnigraphError

# Internal to the engine: translated before a user sees them, so the tree does not show them.
INTERNAL = {"AmbiguousOutcome", "CommitRefused", "FailpointError", "TableExists", "TableNotFound"}


def _load_everything() -> None:
    for found in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        if not found.name.endswith("__main__"):
            import_module(found.name)


def _below(kind: type[OmnigraphError]) -> list[type[OmnigraphError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _below(child))]


_load_everything()
ALL = [k for k in dict.fromkeys(_below(OmnigraphError)) if k.__module__.startswith("omnigraph.")]
EVERY = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def drawn() -> dict[str, str | None]:
    """Class to base class, as the docstring of ``errors.py`` draws them."""
    tree: dict[str, str | None] = {}
    path: list[str] = []
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        match = re.match(r"^    ((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+)(?:\s{2,}|$)", line)
        if match is None or (not path and match[2] != "OmnigraphError"):
            continue
        depth = 0 if match[2] == "OmnigraphError" else len(match[1]) // 4 + 1
        del path[depth:]
        tree[match[2]] = path[-1] if path else None
        path.append(match[2])
    return tree


def test_the_tree_shows_every_error_below_its_base() -> None:
    bases = {kind.__name__: kind.__base__.__name__ for kind in ALL if kind is not OmnigraphError}
    shown = {name: base for name, base in drawn().items() if base is not None}
    assert shown == {name: base for name, base in bases.items() if name not in INTERNAL}


def test_what_is_left_out_of_the_tree_lives_in_storage() -> None:
    hidden = {kind.__name__: kind.__module__ for kind in ALL if kind.__name__ in INTERNAL}
    assert hidden.keys() == INTERNAL
    assert all(module.startswith("omnigraph.storage.") for module in hidden.values())


@EVERY
def test_it_has_a_code_a_status_and_a_remedy(kind: type[OmnigraphError]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", kind.code)
    assert 400 <= kind.status <= 599
    assert isinstance(kind.retryable, bool)
    assert kind.default_remedy.endswith(".")
    assert "\n" not in kind.default_remedy


def test_codes_are_unique() -> None:
    """A ``SourceError`` is the ``LanguageError`` that knows its places: one code for both."""
    codes: dict[str, list[str]] = {}
    for kind in ALL:
        codes.setdefault(kind.code, []).append(kind.__name__)
    assert {code: names for code, names in codes.items() if len(names) > 1} == {
        "language_error": ["LanguageError", "SourceError"]
    }


@EVERY
def test_it_survives_a_process_boundary(kind: type[OmnigraphError]) -> None:
    error = kind.__new__(kind)
    Exception.__init__(error, "what happened")
    error.message, error.remedy, error.details = "what happened", "Do this.", {"a": 1}

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert again.to_json() == error.to_json()
    assert str(again) == "what happened"
