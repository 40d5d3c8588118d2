"""What holds for every query: generated ones here, by the thousand."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from tests.lang.query.loading import schema
from tests.support.generate_query import GeneratedQuery, QueryGenerator
from tests.support.generate_schema import generate_schema

from omnigraph.lang.query import (
    bind_parameters,
    compile_query,
    explain,
    explain_json,
    format_queries,
    parse_queries,
)
from omnigraph.lang.schema import AcceptedSchema, accept_schema

CHUNKS = range(5)
FORMATTED_PER_CHUNK = 1_000
PLANNED_PER_CHUNK = 200


def generated(chunk: int, number: int) -> Iterator[tuple[GeneratedQuery, AcceptedSchema, Random]]:
    """Queries for the test schemas and for random ones, with the randomness to go on."""
    for seed in range(chunk * number, (chunk + 1) * number):
        random = Random(seed)
        used = schema("world") if seed % 10 else random_schema(random)
        yield QueryGenerator(used, random).query(), used, random


def random_schema(random: Random) -> AcceptedSchema:
    """A random schema in which something can be read, compared and written."""
    while True:
        found = accept_schema(generate_schema(random).text(), mint=lambda: str(random.random()))
        properties = [item for node in found.nodes.values() for item in node.properties.values()]
        if any(item.type.is_single for item in properties):
            return found


def spread(text: str, random: Random) -> str:
    """The same text with comments and line breaks where there was a space between clauses."""
    noise = ("\n", "\n\n\n", " // why\n", " /* here */ ", "\n  /* two\n lines */\n", "\t")
    return "".join(
        random.choice(noise) if char == "\n" and random.random() < 0.7 else char for char in text
    )


@pytest.mark.parametrize("chunk", CHUNKS)
def test_formatting_twice_changes_nothing_and_keeps_the_meaning(chunk: int) -> None:
    for query, _, random in generated(chunk, FORMATTED_PER_CHUNK):
        text = spread(query.text(), random)
        once = format_queries(text)
        assert format_queries(once) == once, text
        assert parse_queries(once) == parse_queries(text), text
        assert once.count("//") + once.count("/*") == text.count("//") + text.count("/*")


@pytest.mark.parametrize("chunk", CHUNKS)
def test_the_plan_is_independent_of_clause_order_and_layout(chunk: int) -> None:
    for query, used, random in generated(chunk, PLANNED_PER_CHUNK):
        text = query.text()
        compiled = compile_query(text, used)
        bind_parameters(compiled.checked.parameters, query.values)
        shuffled = query.text(shuffle=random)
        other = compile_query(shuffled, used).plan
        assert other == compiled.plan, f"{text}\n{shuffled}"
        assert explain(other) == explain(compiled.plan)
        assert explain_json(other) == explain_json(compiled.plan)
        assert compile_query(format_queries(shuffled), used).plan == compiled.plan


def test_the_generator_is_reproducible_and_varied() -> None:
    def texts(seed: int) -> list[str]:
        generator = QueryGenerator(schema("world"), Random(seed))
        return [generator.query().text() for _ in range(200)]

    assert texts(7) == texts(7)
    everything = " ".join(texts(7))
    for part in (
        "not {",
        "<",
        "nearest(",
        "bm25(",
        "rrf(",
        "search(",
        "insert",
        "update",
        "delete",
    ):
        assert part in everything
