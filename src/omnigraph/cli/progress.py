"""Shows the progress of bulk work in one line on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from omnigraph import Progress
from omnigraph.cli.commands import Invocation

BAR_CHARS: Final = 30


def watcher(call: Invocation) -> Callable[[Progress], None] | None:
    """A function that shows progress; None when stderr is not a terminal or progress is off."""
    if call.flags.quiet or call.flags.json or not sys.stderr.isatty():
        return None

    def show(progress: Progress) -> None:
        if progress.message:
            print(progress.message, file=sys.stderr, flush=True)
            return
        text = f"{progress.phase}: {progress.rows} rows, {progress.bytes_read >> 20} MiB"
        if progress.tasks:
            text = f"{progress.phase}: {_bar(progress.tasks_done, progress.tasks)}"
        end = "\n" if progress.phase == "done" else ""
        print(f"\r{text:60}", end=end, file=sys.stderr, flush=True)

    return show


def _bar(done: int, total: int) -> str:
    filled = BAR_CHARS * done // total
    return f"[{'=' * filled}{' ' * (BAR_CHARS - filled)}] {done}/{total} tasks"
