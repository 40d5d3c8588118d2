"""Tools that look back: commits, changes, differences, histories of entities."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Final

from pydantic import Field

from omnigraph.mcp import shapes
from omnigraph.mcp.answers import fitting
from omnigraph.mcp.calls import GraphTool
from omnigraph.mcp.session import McpSession
from omnigraph.mcp.tools.arguments import (
    BranchArgument,
    GraphArgument,
    KindsArgument,
    LimitArgument,
    OpsArgument,
    PageArgument,
    TypeArgument,
    TypesArgument,
)

CommitArgument = Annotated[str, Field(description="The id of the commit.")]
RefArgument = Annotated[str, Field(description="A branch, a tag, a commit or a time.")]
PAGE_COMMITS: Final = 20


class HistoryTools:
    """The tools that look back."""

    def __init__(self, session: McpSession) -> None:
        self._session = session

    def commits_list(
        self,
        branch: BranchArgument = "main",
        limit: LimitArgument = None,
        after: Annotated[
            str | None, Field(description="Go on after this commit, the last of the page before.")
        ] = None,
        actor: Annotated[str | None, Field(description="Only commits of this author.")] = None,
        message: Annotated[
            str | None, Field(description="Only commits whose message contains this text.")
        ] = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """The commits of a branch, newest first: who wrote, when and why."""
        found = self._session.graph(graph).history.log(
            branch, after=after, actor=actor, message=message
        )
        most = min(limit or PAGE_COMMITS, self._session.access.limits.rows_max)
        commits = list(islice((commit.to_json() for commit in found), most + 1))
        shown = fitting(commits, self._session.access.limits, rows_max=most)
        body: dict[str, Any] = {"commits": shown}
        if len(commits) > len(shown):
            following = {"after": shown[-1]["graph_commit_id"]}
            hint = "Older commits were left out. Repeat the call with these arguments."
            body["rest"] = {"next_call": following, "hint": hint}
        return body

    def commits_get(self, commit_id: CommitArgument, graph: GraphArgument = None) -> dict[str, Any]:
        """One commit: its author, time, message and parents."""
        return self._session.graph(graph).history.commit(commit_id).to_json()

    def commits_changes(
        self,
        commit_id: CommitArgument,
        kinds: KindsArgument = None,
        types: TypesArgument = None,
        ops: OpsArgument = None,
        limit: LimitArgument = None,
        page_token: PageArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """What a commit changed: every entity with its properties before and after."""
        limits = self._session.access.limits
        page = self._session.graph(graph).history.commit_changes(
            commit_id,
            kinds=kinds or (),
            types=types or (),
            ops=ops or (),
            limit=min(limit or limits.rows_max, limits.rows_max),
            bytes_max=limits.bytes_max,
            page_token=page_token,
        )
        return page.to_json()

    def changes_poll(
        self,
        branch: BranchArgument = "main",
        start: Annotated[
            str | None,
            Field(description="Where to begin: now, beginning, or after:COMMIT."),
        ] = None,
        cursor: Annotated[str | None, Field(description="The `cursor` of the poll before.")] = None,
        page_token: PageArgument = None,
        kinds: KindsArgument = None,
        types: TypesArgument = None,
        ops: OpsArgument = None,
        limit: LimitArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """What was committed since a cursor, commit by commit, in order."""
        limits = self._session.access.limits
        page = self._session.graph(graph).history.changes(
            branch,
            start=start,
            cursor=cursor,
            page_token=page_token,
            kinds=kinds or (),
            types=types or (),
            ops=ops or (),
            limit=min(limit or limits.rows_max, limits.rows_max),
            bytes_max=limits.bytes_max,
        )
        return page.to_json()

    def diff(
        self,
        old: RefArgument,
        new: RefArgument,
        kinds: KindsArgument = None,
        types: TypesArgument = None,
        ops: OpsArgument = None,
        limit: LimitArgument = None,
        page_token: PageArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """What sets two states apart: counts by type, and each entity before and after."""
        limits = self._session.access.limits
        found = self._session.graph(graph).diff(
            old, new, kinds=kinds or (), types=types or (), ops=ops or ()
        )
        most = min(limit or limits.rows_max, limits.rows_max)
        page = found.page(most, page_token)
        changes = [change.to_json() for change in page.changes]
        shown = fitting(changes, limits, rows_max=most)
        token = page.next_page_token
        if len(shown) < len(changes):  # too large for one answer: end the page earlier
            token = found.page(len(shown), page_token).next_page_token
        body: dict[str, Any] = {"stats": found.stats.to_json(), "changes": shown}
        schema = [difference.to_json() for difference in found.schema]
        if schema:
            body["schema"] = schema
        return body if token is None else body | {"next_page_token": token}

    def entity_history(
        self,
        type: TypeArgument,
        id: Annotated[str, Field(description="The id of the entity.")],
        branch: BranchArgument = "main",
        limit: LimitArgument = None,
        page_token: PageArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Every commit that changed an entity, newest first, with what it changed."""
        limits = self._session.access.limits
        history = self._session.graph(graph).history.entity(type, id, branch)
        page = history.page(min(limit or PAGE_COMMITS, limits.rows_max), page_token)
        events = [event.to_json() for event in page.events]
        shown = fitting(events, limits)
        token = page.next_page_token
        if len(shown) < len(events):  # too large for one answer: end the page earlier
            token = history.page(len(shown), page_token).next_page_token
        body: dict[str, Any] = {"events": shown}
        return body if token is None else body | {"next_page_token": token}

    def blame(
        self,
        type: TypeArgument,
        id: Annotated[str, Field(description="The id of the entity.")],
        branch: BranchArgument = "main",
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """For every property of an entity: its value, who set it, when and why."""
        found = self._session.graph(graph).history.blame(type, id, branch)
        return {"properties": [item.to_json() for item in found]}


def history_tools(session: McpSession) -> list[GraphTool]:
    """The tools, as the server registers them."""
    tools = HistoryTools(session)
    return [
        GraphTool("commits_list", "Commits", tools.commits_list, shapes.ToolCommits),
        GraphTool("commits_get", "One commit", tools.commits_get, shapes.ToolCommit),
        GraphTool(
            "commits_changes", "Changes of a commit", tools.commits_changes, shapes.ToolBlock
        ),
        GraphTool("changes_poll", "Change feed", tools.changes_poll, shapes.ToolFeed),
        GraphTool("diff", "Difference of two states", tools.diff, shapes.ToolDiff),
        GraphTool(
            "entity_history", "History of an entity", tools.entity_history, shapes.ToolHistory
        ),
        GraphTool("blame", "Who set the values", tools.blame, shapes.ToolBlame),
    ]
