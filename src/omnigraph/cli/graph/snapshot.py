"""``omnigraph snapshot``."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import data_verb

app = single("Show what a branch of a graph holds.")


@command(app, data_verb("snapshot"))
def snapshot(call: Call, uri: UriArgument = None, branch: BranchOption = "main") -> Result:
    """Show every type of a branch with its version and how many entities it has."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    data = graph.snapshot(branch).to_json()
    return Result(data, _lines(data))


def _lines(data: dict[str, Any]) -> list[str]:
    head = f"branch {data['graph_branch']} at manifest version {data['graph_manifest_version']}"
    rows = [
        (
            dataset["entity_kind"],
            dataset["type_name"],
            f"{dataset['entity_count']} entities",
            f"version {dataset['published_dataset_version']}",
        )
        for dataset in data["datasets"]
    ]
    return [head, *columns(rows)]
