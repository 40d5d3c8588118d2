"""``omnigraph query`` and ``omnigraph index``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph

AGES = (
    "query ages($min: I32?) { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
)
TIES = "query ties() { match { $p: Person  $p knows $q } return { $p.name as who, $q } }"


def test_a_table_has_a_headline_columns_and_rows(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "2 rows from branch main via ages",
        "p.name | p.age",
        "-------+------",
        "ana    | 30",
        "bo     | null",
    ]


def test_csv_quotes_what_needs_it(inline: Program, people: Path) -> None:
    done = inline("query", "--store", str(people), "-e", TIES, "--format", "csv")
    head, row = done.out.splitlines()
    assert head == "who,q"
    assert row.startswith('ana,"{""id"":""bo""')


def test_jsonl_begins_with_what_was_read(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, "--format", "jsonl")
    first, *rows = [json.loads(line) for line in done.out.splitlines()]
    assert first == {
        "kind": "metadata",
        "query_name": "ages",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
    }
    assert rows == [{"p.name": "ana", "p.age": 30}, {"p.name": "bo", "p.age": None}]


def test_kv_has_a_block_for_each_row(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, "--format", "kv")
    assert done.out.splitlines()[1:4] == ["row 1", "p.name: ana", "p.age: 30"]


def test_separators_of_lines_within_a_string_stay_within_it(inline: Program, people: Path) -> None:
    text = 'query q() { match { $p: Person } return { "a\u2028b\u0085c" as x } limit 1 }'
    done = inline("query", "--uri", str(people), "-e", text, "--format", "json")
    assert json.loads(done.out)["rows"] == [{"x": "a\u2028b\u0085c"}]


@pytest.mark.parametrize("flag", ["--timeout-ms", "--max-rows"])
@pytest.mark.parametrize("number", ["²", "9" * 5_000, "1.5", "x"])
def test_a_number_is_plain_digits(inline: Program, people: Path, flag: str, number: str) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, flag, number)
    assert done.code == 1
    assert f"Give {flag} a whole number" in done.err


def test_no_branch_is_called_nothing(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, "--branch", "")
    assert done.code == 1
    assert "branch" in done.err


def test_who_names_the_nearest_is_one_of_two(inline: Program, people: Path) -> None:
    for how in ("exact", "indexed"):
        assert inline("query", "--uri", str(people), "-e", AGES, "--nearest", how).code == 0
    done = inline("query", "--uri", str(people), "-e", AGES, "--nearest", "roughly")
    assert done.code == 1
    assert "exact or indexed" in done.err


def test_json_is_the_envelope(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, "--branch", "feature/x", "--json")
    assert done.json["target"] == {"branch": "feature/x", "snapshot": None}
    assert done.json["row_count"] == 2
    assert (
        inline(
            "query", "--uri", str(people), "-e", AGES, "--branch", "feature/x", "--format", "json"
        ).json
        == done.json
    )


def test_nothing_found_says_so(inline: Program, people: Path) -> None:
    text = 'query none() { match { $p: Person { name: "zz" } } return { $p } }'
    for form in ("table", "kv"):
        done = inline("query", "--uri", str(people), "-e", text, "--format", form)
        assert done.out.splitlines() == ["0 rows from branch main via none", "(no rows)"]


def test_a_file_a_name_and_parameters(inline: Program, people: Path, tmp_path: Path) -> None:
    file, values = tmp_path / "q.gq", tmp_path / "p.json"
    file.write_text(AGES + "\n" + TIES)
    values.write_text('{"min": 3}')
    done = inline(
        *("query", "ages", "--uri", str(people), "--query", str(file)),
        *("--params-file", str(values), "--format", "csv"),
    )
    assert done.out.splitlines()[0] == "p.name,p.age"


def test_a_commit_can_be_read(inline: Program, people: Path) -> None:
    import omnigraph

    first = omnigraph.open(people, read_only=True).history.commits()[-1].commit_id
    done = inline("query", "--uri", str(people), "-e", AGES, "--snapshot", first)
    assert done.out.splitlines()[0] == f"0 rows from snapshot {first} via ages"


@pytest.mark.parametrize("flags", [["--analyze"], ["--profile"], ["--profile", "--quiet"]])
def test_analyze_shows_the_steps(inline: Program, people: Path, flags: list[str]) -> None:
    done = inline("query", "--uri", str(people), "-e", TIES, *flags)
    assert done.out.splitlines()[0].split() == ["rows", "ms", "access", "step"]
    assert "expand" in done.out


def test_a_profile_with_a_name_is_a_configured_target(inline: Program) -> None:
    done = inline("query", "-e", TIES, "--profile", "staging")
    assert done.code != 0
    assert "profile 'staging'" in done.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "no query is given"),
        (["-e", " "], "empty"),
        (["-e", AGES, "--query", "x.gq"], "both"),
        (["-e", AGES, "--branch", "main", "--snapshot", "x"], "exclude"),
        (["-e", AGES, "--format", "xml"], "no format"),
        (["-e", AGES, "--params", "{}", "--params-file", "x"], "both"),
        (["-e", AGES, "--params", "{"], "not JSON"),
        (["-e", AGES, "--params", '{"min": "x"}'], "min"),
        (["-e", AGES, "--params", '{"Min": 3}'], "did you mean `min`?"),
        (["-e", AGES, "--timeout-ms", "soon"], "--timeout-ms"),
        (["-e", AGES, "--max-rows", "1"], "query_result_rows"),
        (["-e", AGES, "--branch", "nowhere"], "nowhere"),
        (["other", "-e", AGES], "other"),
        (["-e", "query q() {"], "query"),
        (["-e", 'query q() { insert City { name: "x" } }'], "error"),
    ],
)
def test_what_cannot_be_run_is_an_error(
    inline: Program, people: Path, arguments: list[str], word: str
) -> None:
    done = inline("query", "--uri", str(people), *arguments)
    assert (done.code, done.out) == (1, "")
    assert word in done.err
    assert "remedy: " in done.err


def test_format_and_json_exclude_each_other(inline: Program, people: Path) -> None:
    done = inline("query", "--uri", str(people), "-e", AGES, "--format", "kv", "--json")
    assert done.code == 1
    assert "exclude" in done.json["error"]


def test_indexes_are_built_and_reported(inline: Program, tmp_path: Path) -> None:
    where = tmp_path / "g"
    people_graph(where)
    done = inline("index", "build", str(where), "--json")
    states = {(i["type_key"], i["property"]): i["state"] for i in done.json["indexes"]}
    assert states["node:Person", "id"] == "built"
    assert states["edge:Knows", "src"] == "built"
    again = inline("index", "build", str(where), "--quiet")
    assert all(line.endswith(("current", "empty")) for line in again.out.splitlines())
