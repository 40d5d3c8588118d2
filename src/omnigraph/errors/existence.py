"""A named thing does not exist, or exists already."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class NotFound(OmnigraphError):
    code = "not_found"
    status = 404
    default_remedy = "Check the spelling of the name."


class GraphNotFound(NotFound):
    code = "graph_not_found"
    default_remedy = "Create a graph there with `omnigraph init --schema FILE URI`."


class BranchNotFound(NotFound):
    code = "branch_not_found"
    default_remedy = "List the branches of the graph and use one of them."


class CommitNotFound(NotFound):
    code = "commit_not_found"
    default_remedy = "List commits with `omnigraph commit list` and use one of their ids."


class TagNotFound(NotFound):
    code = "tag_not_found"
    default_remedy = "List the tags with `omnigraph tag list` and use one of them."


class RefNotFound(NotFound):
    code = "ref_not_found"
    default_remedy = "Name a branch, a tag, a commit id or a time such as 2026-05-01T12:00:00Z."


class HistoryReclaimed(NotFound):
    code = "history_reclaimed"
    status = 410
    default_remedy = "Use a newer commit. Tag commits that must stay readable."


class HistoryPurged(HistoryReclaimed):
    code = "history_purged"
    default_remedy = "Use a newer commit. If a purge was interrupted, run it again: it continues."


class TypeNotFound(NotFound):
    code = "type_not_found"
    default_remedy = "List the types with `omnigraph snapshot` and use one of them."


class QueryNotFound(NotFound):
    """The text of a request has no such query: the request is wrong, nothing is missing."""

    code = "query_not_found"
    status = 400
    default_remedy = "Use the name of a query in the text."


class EntityNotFound(NotFound):
    code = "entity_not_found"
    default_remedy = "Check the entity's type and id, and the branch or commit being read."


class ObjectNotFound(NotFound):
    code = "object_not_found"
    default_remedy = "Refresh and try again: another process may have removed the object."


class AlreadyExists(OmnigraphError):
    code = "already_exists"
    status = 409
    default_remedy = "Choose another name, or use the existing one."


class GraphExists(AlreadyExists):
    code = "graph_exists"
    default_remedy = "Open the existing graph, or choose another location."


class BranchExists(AlreadyExists):
    code = "branch_exists"
    default_remedy = "Use the existing branch, or choose another name."


class TagExists(AlreadyExists):
    code = "tag_exists"
    default_remedy = "Choose another name, or move the tag with --force."


class BackupRefused(AlreadyExists):
    code = "backup_refused"
    default_remedy = "Use an empty location or, for a backup, an earlier backup of this graph."


class ObjectExists(AlreadyExists):
    code = "object_exists"
    default_remedy = "Read the existing object: another process created it first."
