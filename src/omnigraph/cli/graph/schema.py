"""``omnigraph schema``: show a schema, plan a change of it, apply it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb, direct_verb
from omnigraph.cli.arguments import (
    BranchOption,
    IdempotencyOption,
    IfCommitOption,
    MessageOption,
    MetadataOption,
    UriArgument,
    pairs,
    read_text,
    several,
)
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.confirmation import confirm
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult
from omnigraph.cli.source_files import read_schema
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import SchemaPlan, SchemaStep, plan_schema

app = group("Show a schema, plan a change of it, or apply it.")

WantedOption = Annotated[
    str, typer.Option("--schema", metavar="FILE", help="The new schema (.pg).")
]
DataLossOption = Annotated[
    bool, typer.Option("--allow-data-loss", help="Remove the data of drops permanently.")
]
BackfillOption = Annotated[
    list[str] | None,
    several(
        "--backfill",
        "TYPE.PROPERTY=JSON",
        "The value of a new property for existing entities.",
    ),
]
ComputeOption = Annotated[
    list[str] | None,
    several(
        "--compute",
        "TYPE.PROPERTY=EXPRESSION",
        "Compute a new property of existing entities from other properties.",
    ),
]
UndropOption = Annotated[
    list[str] | None,
    several("--undrop", "NAME", "Restore a dropped type, or property as TYPE.PROPERTY."),
]


@command(app, data_verb("schema show"))
def show(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="REF", help="A commit, a tag or a time.", show_default=False),
    ] = None,
) -> CommandResult:
    """Show the accepted schema of a graph, as it was written."""
    schema = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings).schema(
        branch, at=at
    )
    return CommandResult(
        {"schema_source": schema.source}, schema.source.removesuffix("\n").split("\n")
    )


@command(app, direct_verb("schema plan", store=True))
def plan(
    call: Invocation,
    schema: WantedOption,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Plan from this schema file instead of from a graph.",
            show_default=False,
        ),
    ] = None,
    backfill: BackfillOption = None,
    compute: ComputeOption = None,
    undrop: UndropOption = None,
    allow_data_loss: DataLossOption = False,
) -> CommandResult:
    """Show the steps that lead from one schema to another. Changes nothing."""
    if from_file is not None:
        if uri is not None or call.flags.store is not None or backfill or compute or undrop:
            raise InvalidInput(
                "--from stands alone: it plans between two files",
                remedy="Leave the graph, --backfill, --compute and --undrop out.",
            )
        accepted = read_schema(from_file)
        wanted = read_schema(schema, accepted)
        found, shown = plan_schema(accepted, wanted, allow_data_loss=allow_data_loss), from_file
    else:
        graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
        shown = graph.uri
        found = graph.plan_schema(
            read_text(Path(schema), "schema"),
            branch=branch,
            allow_data_loss=allow_data_loss,
            backfill=_values(backfill),
            compute=pairs(compute, "--compute"),
            undrop=undrop or (),
            name=schema,
        )
    data = {"uri": shown, "step_count": len(found.steps), **found.to_json()}
    return CommandResult(data, _lines(found), EXIT_OK if found.supported else EXIT_FAILURE)


@command(app, data_verb("schema apply"))
def apply(
    call: Invocation,
    schema: WantedOption,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    backfill: BackfillOption = None,
    compute: ComputeOption = None,
    undrop: UndropOption = None,
    allow_data_loss: DataLossOption = False,
    if_commit: IfCommitOption = None,
    message: MessageOption = None,
    meta: MetadataOption = None,
    idempotency_key: IdempotencyOption = None,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="ENGINE", help="auto, local, or spark for large tables."),
    ] = "auto",
) -> CommandResult:
    """Apply a schema to a branch as one commit; none if nothing changes."""
    address = call.address(uri)
    if allow_data_loss:
        confirm(call, address, "drop data for good")
    done = omnigraph.open(address.uri, settings=call.settings).apply_schema(
        read_text(Path(schema), "schema"),
        branch=branch,
        allow_data_loss=allow_data_loss,
        backfill=_values(backfill),
        compute=pairs(compute, "--compute"),
        undrop=undrop or (),
        name=schema,
        message=message,
        actor=call.actor,
        metadata=pairs(meta, "--meta"),
        expected_head=if_commit,
        idempotency_key=idempotency_key,
        engine=engine,
    )
    said = "nothing to commit" if done.commit is None else f"commit {done.commit.commit_id}"
    return CommandResult(done.to_json(), [*_lines(done.plan), said])


def _lines(plan: SchemaPlan) -> list[str]:
    return [_line(step) for step in plan.steps] or ["nothing to do"]


def _line(step: SchemaStep) -> str:
    words = [step.kind, step.entity]
    if step.renamed_from:
        words.append(f"(was {step.renamed_from})")
    if step.old_type is not None:
        words.append(f": {step.old_type} to {step.property_type}")
    elif step.property_type is not None:
        words.append(f": {step.property_type}")
    if step.constraint is not None:
        words.append(step.constraint.text)
    if step.cardinality is not None:
        words.append(" to ".join(step.cardinality))
    if step.kind.startswith("drop_") and step.constraint is None:
        words.append(f"({step.mode})")
    if step.validated:
        words.append("(checks stored data)")
    if step.reason:
        words.append(f"— {step.reason}" + (f" [{step.code}]" if step.code else ""))
    return " ".join(words)


def _values(given: list[str] | None) -> dict[str, Any]:
    """Values by property; a value that is not JSON is a string."""
    found: dict[str, Any] = {}
    for place, text in pairs(given, "--backfill").items():
        try:
            found[place] = json.loads(text)
        except ValueError:
            found[place] = text
    return found
