"""What a server is started with: run states, tokens, ids of graphs, addresses."""

from __future__ import annotations

import pytest

from omnigraph import ServerSettings, Settings
from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.server.config import ServerConfig
from omnigraph.server.registry import GraphAddress


def config(built_in: bool = True, **server: object) -> ServerConfig:
    settings = Settings(server=ServerSettings(**server))  # type: ignore[arg-type]
    return ServerConfig((GraphAddress("g", "g"),), settings, built_in_policy=built_in)


@pytest.mark.parametrize(
    ("built_in", "server", "says"),
    [
        (False, {}, "neither a token nor a policy"),
        (True, {}, "a policy and no token"),
        (True, {"tokens_json": '{"a": ""}'}, "blank"),
        (True, {"tokens_json": '{" ": "x"}'}, "blank"),
        (True, {"tokens_json": '{"a": "x", "b": "x"}'}, "same bearer token"),
        (True, {"tokens_json": '{"a": "x", "a": "y"}'}, "two bearer tokens"),
        (True, {"bearer_token": "x", "tokens_json": '{"default": "y"}'}, "two bearer tokens"),
        (True, {"tokens_json": '["a"]'}, "JSON object"),
        (True, {"tokens_json": '{"a": 1}'}, "JSON object"),
        (True, {"tokens_json": "{"}, "JSON object"),
        (True, {"tokens_file": "/nowhere/tokens"}, "cannot be read"),
    ],
)
def test_what_is_refused(built_in: bool, server: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        found = config(built_in, **server)
        found.policy()
        found.authenticator()


def test_tokens_of_a_cloud_are_refused_and_not_ignored() -> None:
    with pytest.raises(NotAvailable):
        config(tokens_aws_secret="x").authenticator()


def test_a_token_is_made_only_where_nobody_could_call() -> None:
    assert config().with_a_token().generated_token is not None
    assert config(bearer_token="x").with_a_token().generated_token is None
    assert config(unauthenticated=True).with_a_token().generated_token is None


def test_the_token_is_not_in_a_repr() -> None:
    found = config().with_a_token()
    assert found.generated_token is not None
    assert found.generated_token not in repr(found)


@pytest.mark.parametrize(
    ("text", "id", "uri"),
    [
        ("people", "people", "people"),
        ("/data/people.omni/", "people", "/data/people.omni/"),
        ("s3://bucket/graphs/people.omni", "people", "s3://bucket/graphs/people.omni"),
        ("team=/data/people", "team", "/data/people"),
        ("team=s3://bucket/a=b", "team", "s3://bucket/a=b"),
    ],
)
def test_the_id_of_a_graph(text: str, id: str, uri: str) -> None:
    assert GraphAddress.parse(text) == GraphAddress(id, uri)


@pytest.mark.parametrize("text", ["a_b", "=x", "graphs=x", "healthz", "a b=x", "a" * 65])
def test_what_cannot_be_an_id(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be the id"):
        GraphAddress.parse(text)


@pytest.mark.parametrize("bind", ["nowhere", "127.0.0.1:", "127.0.0.1:99999", "a:b"])
def test_what_is_no_address(bind: str) -> None:
    with pytest.raises(InvalidInput, match="not an address"):
        _ = config(bind=bind).address


def test_an_address_of_the_sixth_version() -> None:
    assert config(bind="[::1]:8080").address == ("::1", 8080)
