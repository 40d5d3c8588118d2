"""Settings: read from the environment, checked, never written to it."""

from __future__ import annotations

import dataclasses
import os
import pickle
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidInput
from omnigraph.settings import EnvironmentVariable, Settings, described


def test_nothing_set_gives_the_defaults() -> None:
    assert Settings.from_environment({}) == Settings()


def test_a_handle_keeps_the_settings_of_when_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "first")
    graph = omnigraph.init(tmp_path / "g", "node A { k: String @key }")
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "second")
    other = omnigraph.open(graph.uri)
    assert graph.tags.create("v1").actor == "first"
    assert other.tags.create("v2").actor == "second"


def test_given_settings_replace_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "environment")
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", "not read")
    graph = omnigraph.init(
        tmp_path / "g", "node A { k: String @key }", settings=Settings(actor="given")
    )
    assert graph.history.commits()[0].actor == "given"


WRONG = [
    ("OMNIGRAPH_DURABILITY", "disk", "one of process, fsync"),
    ("OMNIGRAPH_LEASE_SECONDS", "0", "above 0"),
    ("OMNIGRAPH_LEASE_SECONDS", "nan", "above 0"),
    ("OMNIGRAPH_READER_GRACE_SECONDS", "-1", "from 0"),
    ("OMNIGRAPH_LOAD_BYTES_MAX", "4G", "a whole number of at least 0"),
    ("OMNIGRAPH_MUTATION_BYTES_MAX", "-1", "a whole number of at least 0"),
    ("OMNIGRAPH_CACHE_BYTES", "much", "a whole number of at least 0"),
    ("OMNIGRAPH_CACHE_DIR_BYTES", "1e9", "a whole number of at least 0"),
    ("OMNIGRAPH_LOAD_ENGINE", "fast", "one of auto, spark, local"),
    ("OMNIGRAPH_SPARK_SERVER", "on", "one of auto, off"),
    ("OMNIGRAPH_SPARK_STALL_SECONDS", "0", "above 0"),
    ("OMNIGRAPH_SPARK_STALL_SECONDS", "soon", "above 0"),
    ("OMNIGRAPH_EMBED_PROVIDER", "acme", "openai-compatible"),
    ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "0", "at least 1"),
    ("OMNIGRAPH_EMBED_DEADLINE_MS", "soon", "at least 0"),
    ("OMNIGRAPH_EMBEDDINGS_MOCK", "perhaps", "true or false"),
    ("OMNIGRAPH_DEBUG", "perhaps", "true or false"),
    ("AWS_ALLOW_HTTP", "maybe", "true or false"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_a_wrong_value_is_refused_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Settings.from_environment({name: value})
    assert f"{name} is {value!r}" in caught.value.message
    assert allowed in caught.value.message
    assert name in caught.value.remedy
    assert caught.value.details["variable"] == name


def test_flags_are_written_in_several_ways() -> None:
    for text in ("1", "true", "YES", "on"):
        assert Settings.from_environment({"OMNIGRAPH_DEBUG": text}).cli.debug is True
    for text in ("0", "false", "No", "off", ""):
        assert Settings.from_environment({"OMNIGRAPH_DEBUG": text}).cli.debug is False


def test_a_master_is_a_setting_and_no_variable() -> None:
    before = dict(os.environ)
    assert Settings().with_master("local[2]").spark.master == "local[2]"
    assert Settings().with_master(None) == Settings()
    with pytest.raises(InvalidInput, match=r"Spark master .* cannot be printed"):
        Settings().with_master("local\0")
    assert dict(os.environ) == before


def test_secrets_are_not_shown_and_settings_travel() -> None:
    names = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY")
    settings = Settings.from_environment(dict.fromkeys(names, "hush"))
    assert "hush" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_every_setting_is_described_once() -> None:
    found = dict(described())
    assert all(
        isinstance(variable, EnvironmentVariable) and variable.meaning
        for variable in found.values()
    )
    variables = [name for variable in found.values() for name in variable.names]
    assert len(variables) == len(set(variables))
    groups = [getattr(Settings(), field.name) for field in dataclasses.fields(Settings)]
    count = sum(
        len(dataclasses.fields(group)) for group in groups if dataclasses.is_dataclass(group)
    )
    assert len(found) == count + 1
