"""``omnigraph version``: print the version of the program and of its format."""

from __future__ import annotations

from omnigraph import __version__
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.cli.addressing import local_verb
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, version_lines

app = single("Print the version of the program and of its format.")


@command(app, local_verb("version"))
def version(call: Invocation) -> CommandResult:
    """Print the version of the program and of the storage format it writes."""
    data = {"version": __version__, "internal_schema_version": INTERNAL_VERSION}
    return CommandResult(data, version_lines())
