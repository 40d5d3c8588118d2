"""``omnigraph version``."""

from __future__ import annotations

from omnigraph import __version__
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, version_lines
from omnigraph.cli.scope import local_verb

app = single("Print the version of the program and of its format.")


@command(app, local_verb("version"))
def version(call: Call) -> Result:
    """Print the version of the program and of the storage format it writes."""
    data = {"version": __version__, "internal_schema_version": INTERNAL_VERSION}
    return Result(data, version_lines())
