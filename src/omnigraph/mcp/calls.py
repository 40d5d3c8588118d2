"""How a tool runs: in a thread, within its time, stopped when its client gives up."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from mcp.types import CallToolResult
from pydantic import BaseModel

from omnigraph.errors import OmnigraphError
from omnigraph.mcp.answers import answer, defect, failure
from omnigraph.model.deadline import Deadline

log = logging.getLogger(__name__)

ToolFunction = Callable[..., Mapping[str, Any]]
"""What a tool does. It runs in a thread; a reading one may take a ``deadline``."""


@dataclass(frozen=True, slots=True)
class GraphTool:
    """A tool: its name, what it does, and what a client may assume about it."""

    name: str
    title: str
    function: ToolFunction
    shape: type[BaseModel]
    writes: bool = False
    destructive: bool = False
    """It can remove what other calls cannot bring back."""
    idempotent: bool = False


def as_coroutine(tool: GraphTool, timeout_ms: int) -> Callable[..., Awaitable[CallToolResult]]:
    """The function of a tool as the SDK calls it.

    A read stops when its time has passed or its client cancels it. A write that has begun
    finishes, so that nobody has to guess what became of it.
    """
    function = tool.function
    takes_deadline = "deadline" in inspect.signature(function).parameters

    @functools.wraps(function)
    async def call(**arguments: Any) -> CallToolResult:
        deadline = Deadline(0 if tool.writes else timeout_ms)
        if takes_deadline:
            arguments["deadline"] = deadline
        work = deadline.bounding(partial(function, **arguments))
        try:
            data = await anyio.to_thread.run_sync(work, abandon_on_cancel=not tool.writes)
        except OmnigraphError as error:
            return failure(error)
        except Exception:
            log.exception("tool %s failed", tool.name)
            return defect()
        finally:
            deadline.cancelled.set()
        return answer(data)

    call.__signature__ = _signature(tool)  # type: ignore[attr-defined]
    return call


def _signature(tool: GraphTool) -> inspect.Signature:
    """What a client passes, and the shape of what it gets."""
    declared = inspect.signature(tool.function, eval_str=True)
    passed = [item for item in declared.parameters.values() if item.name != "deadline"]
    return declared.replace(
        parameters=passed, return_annotation=Annotated[CallToolResult, tool.shape]
    )
