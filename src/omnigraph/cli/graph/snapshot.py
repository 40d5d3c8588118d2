"""``omnigraph snapshot``: show the types of a branch and their table versions."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns

app = single("Show the types of a branch and their table versions.")


@command(app, data_verb("snapshot"))
def snapshot(
    call: Invocation, uri: UriArgument = None, branch: BranchOption = "main"
) -> CommandResult:
    """Show every type of a branch with its version and its number of entities."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    data = graph.snapshot(branch).to_json()
    return CommandResult(data, _lines(data))


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
