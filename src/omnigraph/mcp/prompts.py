"""Prompts: tasks that a person starts from a menu of the client."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field


def tour_of_the_schema() -> str:
    """Explain what the graph holds, with example questions."""
    return (
        "Give me a tour of this graph. Read the schema with `schema_get` and the counts with "
        "`snapshot`. Explain in plain words what the node types stand for and how the edges "
        "connect them, and note constraints that matter for writing. Then propose five questions "
        "that the graph can answer, run each with `query` (add a limit), and show the answers."
    )


def review_a_branch(
    branch: Annotated[str, Field(description="The branch to review.")],
    target: Annotated[str, Field(description="The branch it will be merged into.")] = "main",
) -> str:
    """Review what a branch changes before it is merged."""
    return (
        f"Review branch `{branch}` before it is merged into `{target}`. Use `commits_list` to see "
        f"who wrote to it and why, `diff` from `{target}` to `{branch}` for every change, and "
        f"`merge_preview` for conflicts. Point out changes that look wrong, values that lost "
        f"information, and conflicts with your suggestion for each. Do not merge. End with one of: "
        f"merge, merge after these corrections, do not merge."
    )


def explain_a_diff(
    old: Annotated[str, Field(description="A branch, a tag, a commit or a time.")],
    new: Annotated[str, Field(description="A branch, a tag, a commit or a time.")],
) -> str:
    """Explain what happened between two states."""
    return (
        f"Explain what changed from `{old}` to `{new}`. Read `diff` (page through all of it), and "
        f"for the entities that matter `blame`, so that you can say who changed them and why. "
        f"Begin with a summary of three sentences, then group the changes by subject, not by table."
    )


def add_prompts(server: MCPServer) -> None:
    """Register the prompts of a server."""
    for function in (tour_of_the_schema, review_a_branch, explain_a_diff):
        title = function.__name__.replace("_", " ").capitalize()
        server.prompt(name=function.__name__, title=title)(function)
