"""``omnigraph recovery``: unfinished writes and finished recoveries."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.frame import Call, command, group
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import direct_verb

app = group("Look at unfinished writes and finished recoveries.")


@command(app, direct_verb("recovery list", store=True))
def list_recoveries(call: Call, uri: UriArgument = None) -> Result:
    """List what is pending, with what will happen to it, and every recovery that was done."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    pending, finished = graph.pending_writes(), graph.recoveries()
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
    return Result(data, lines)
