"""``omnigraph recovery``: unfinished writes and finished recoveries."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult, columns

app = group("List unfinished writes and finished recoveries.")


@command(app, direct_verb("recovery list", store=True))
def list_recoveries(call: Invocation, uri: UriArgument = None) -> CommandResult:
    """List unfinished writes with their planned resolution, and all past recoveries."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    pending, finished = graph.maintenance.pending_writes(), graph.maintenance.recoveries()
    data = {"pending": [write.to_json() for write in pending], "finished": finished}
    lines = [f"pending: {len(pending)}"]
    lines += columns(
        (w.operation_id, w.branch or "?", w.kind or "?", w.state, w.outlook) for w in pending
    )
    lines.append(f"finished: {len(finished)}")
    lines += columns(
        (
            r["operation_id"],
            r["branch"],
            r["kind"],
            r["action"],
            r["cause"] or "-",
            r["actor_id"] or "-",
        )
        for r in finished
    )
    return CommandResult(data, lines)
