"""``omnigraph schema``: show a schema, plan a change of it."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.frame import Call, command, noun
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, Result
from omnigraph.cli.scope import data_verb, direct_verb
from omnigraph.cli.texts import read_schema
from omnigraph.errors import InvalidInput
from omnigraph.schema import AcceptedSchema, Step, plan_schema

app = noun("Show a schema, or plan a change of it.")


@command(app, data_verb("schema show"))
def show(call: Call, uri: UriArgument = None, branch: BranchOption = "main") -> Result:
    """Show the accepted schema of a graph, as it was written."""
    import omnigraph

    schema = omnigraph.open(call.address(uri).uri, read_only=True).schema(branch)
    return Result({"schema_source": schema.source}, schema.source.splitlines())


@command(app, direct_verb("schema plan", store=True))
def plan(
    call: Call,
    schema: Annotated[str, typer.Option("--schema", metavar="FILE", help="The wanted schema.")],
    uri: UriArgument = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Plan from this schema file instead of from a graph.",
            show_default=False,
        ),
    ] = None,
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Drop for good what is dropped.")
    ] = False,
) -> Result:
    """Show the steps that lead from one schema to another. Changes nothing."""
    accepted, shown = _accepted(call, uri, from_file)
    steps = plan_schema(accepted, read_schema(schema, accepted), allow_data_loss=allow_data_loss)
    data = {"uri": shown, "step_count": len(steps.steps), **steps.to_json()}
    code = EXIT_OK if steps.supported else EXIT_FAILURE
    return Result(data, [_line(step) for step in steps.steps] or ["nothing to do"], code)


def _line(step: Step) -> str:
    words = [step.kind, step.entity]
    if step.renamed_from:
        words.append(f"(was {step.renamed_from})")
    if step.property_type is not None:
        words.append(f": {step.property_type}")
    if step.kind.startswith("drop"):
        words.append(f"({step.mode})")
    if step.reason:
        words.append(f"— {step.reason}" + (f" [{step.code}]" if step.code else ""))
    return " ".join(words)


def _accepted(call: Call, uri: str | None, file: str | None) -> tuple[AcceptedSchema, str]:
    if file is not None:
        if uri is not None or call.flags.store is not None:
            raise InvalidInput("both --from and a graph are given", remedy="Keep one of them.")
        return read_schema(file), file
    import omnigraph

    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    return graph.schema(), graph.uri
