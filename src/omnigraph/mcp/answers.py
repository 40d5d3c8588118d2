"""Answers of bounded size, and failures that a model can act on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mcp.types import CallToolResult, TextContent

from omnigraph.errors import OmnigraphError
from omnigraph.lang.syntax.diagnostics import SourceError
from omnigraph.mcp.access import AnswerLimits

DEFECT: Final = {
    "error": "an internal error; the log of the MCP server has the details",
    "code": "internal",
    "retryable": False,
}


def answer(data: Mapping[str, Any]) -> CallToolResult:
    """A successful answer: the data, and the same as text for clients without structured output."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=dict(data)
    )


def failure(error: OmnigraphError) -> CallToolResult:
    """A failed call: the error, and an explanation in words that quotes the text it is about."""
    explanation = error.message
    if isinstance(error, SourceError):
        explanation = error.render()
    return _failed(
        error.to_json(), error.status, error.code, f"{explanation}\nremedy: {error.remedy}"
    )


def defect() -> CallToolResult:
    """A failure of the program itself: nothing about it reaches the client."""
    return _failed(dict(DEFECT), 500, "internal", str(DEFECT["error"]))


def _failed(body: Mapping[str, Any], status: int, code: str, explanation: str) -> CallToolResult:
    shown = {
        "error": body["error"],
        "status": status,
        "code": code,
        "requestId": None,
        "explanation": explanation,
        "body": body,
    }
    text = json.dumps(shown, ensure_ascii=False, default=str)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def fitting(
    items: Iterable[Any], limits: AnswerLimits, *, rows_max: int | None = None
) -> list[Any]:
    """The first items that fit into one answer; at least one, however large it is."""
    most = limits.rows_max if rows_max is None else min(rows_max, limits.rows_max)
    found: list[Any] = []
    size = 0
    for item in items:
        if len(found) == most:
            break
        size += len(json.dumps(item, ensure_ascii=False, default=str))
        if found and size > limits.bytes_max:
            break
        found.append(item)
    return found


def rest_of(
    items: Sequence[Any], shown: int, next_call: Mapping[str, Any], hint: str
) -> dict[str, Any]:
    """The member of an answer that says what was left out and how to get it; empty if nothing."""
    if shown >= len(items):
        return {}
    left = len(items) - shown
    return {"rest": {"left_out": left, "next_call": dict(next_call), "hint": hint}}
