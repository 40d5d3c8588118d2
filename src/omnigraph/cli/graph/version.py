"""``omnigraph version``."""

from __future__ import annotations

from omnigraph import __version__
from omnigraph.catalog.format import INTERNAL_VERSION
from omnigraph.cli.frame import Call, Noun, command
from omnigraph.cli.output import Result
from omnigraph.cli.scope import local_verb

app = Noun("Print the version of the program and of its format.", single=True)


def version_lines() -> list[str]:
    return [f"omnigraph {__version__}", f"internal-schema {INTERNAL_VERSION}"]


@command(app, local_verb("version"))
def version(call: Call) -> Result:
    """Print the version of the program and of the storage format it writes."""
    data = {"version": __version__, "internal_schema_version": INTERNAL_VERSION}
    return Result(data, version_lines())
