"""The branch registry: logical names, and the physical refs behind them.

A branch exists when main's manifest has a row ``branch:<name>``. The row names the branch's
*incarnation*, a ULID that is the Lance ref of ``__manifest`` and is never used again: a deleted
and recreated name is a different branch. Creating one makes the ref first and the row second, so a
crash in between leaves an orphaned ref.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.rows import MAIN, Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import AlreadyExists, BranchExists, BranchNotFound, InvalidInput

BRANCH_NAME_MAX = 255
RESERVED_NAMES = frozenset({"__schema_apply_lock__"})


@dataclass(frozen=True, slots=True)
class Branch:
    """One live branch."""

    name: str
    incarnation: str
    parent: str | None = None
    fork_commit: str | None = None
    fork_version: int | None = None
    actor: str | None = None
    """The actor that created it; None when unknown."""

    @property
    def ref(self) -> str | None:
        """The Lance ref of this branch's manifest; None for main."""
        return None if self.name == MAIN else self.incarnation

    def to_row(self) -> Row:
        data: dict[str, str | int | None] = {
            "incarnation": self.incarnation,
            "parent": self.parent,
            "fork_commit": self.fork_commit,
            "fork_version": self.fork_version,
        }
        if self.actor is not None:
            data["actor"] = self.actor
        return Row(f"branch:{self.name}", RowKind.BRANCH, data)

    @classmethod
    def from_row(cls, row: Row) -> Branch:
        data = row.metadata
        return cls(
            row.object_id.partition(":")[2],
            data["incarnation"],
            data["parent"],
            data["fork_commit"],
            data["fork_version"],
            data.get("actor"),
        )


MAIN_BRANCH = Branch(MAIN, MAIN)


def all_branches(main_state: ManifestState) -> dict[str, Branch]:
    """Every live branch by name, main included, in name order."""
    registered = [Branch.from_row(row) for row in main_state.rows(RowKind.BRANCH)]
    found = sorted((MAIN_BRANCH, *registered), key=lambda branch: branch.name)
    return {branch.name: branch for branch in found}


def get_branch(main_state: ManifestState, name: str) -> Branch:
    """The live branch of this name, or a typed error."""
    if name == MAIN:
        return MAIN_BRANCH
    row = main_state.row(f"branch:{name}")
    if row is None:
        raise BranchNotFound(f"branch {name!r} does not exist", details={"branch": name})
    return Branch.from_row(row)


def is_protected(main_state: ManifestState, branch: Branch) -> bool:
    """Whether the branch may neither be deleted nor reset."""
    return main_state.row(protection_id(branch)) is not None


def accepts_only_merges(main_state: ManifestState, branch: Branch) -> bool:
    """Whether only merges may write to the branch."""
    row = main_state.row(protection_id(branch))
    return row is not None and bool(row.metadata.get("merges_only"))


def protection_id(branch: Branch) -> str:
    return f"protection:{branch.incarnation}"


def check_new_name(main_state: ManifestState, name: str) -> str:
    """The name to create, trimmed, or a typed error with the problem."""
    check_text("name of a branch", name)
    name = name.strip()
    if name == MAIN:
        raise AlreadyExists("the branch main always exists", remedy="Choose another name.")
    problem = name_problem(name)
    if problem:
        raise InvalidInput(
            f"{name!r} cannot be a branch name: {problem}",
            remedy="Use letters, digits and . _ - with / between parts, such as etl/run-1.",
        )
    if main_state.row(f"tag:{name}") is not None:
        raise BranchExists(f"there is a tag {name!r} already", details={"tag": name})
    for other in all_branches(main_state):
        if other == name:
            raise BranchExists(f"branch {name!r} exists already", details={"branch": name})
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise BranchExists(
                f"the names {name!r} and {other!r} conflict: one is a path prefix of the other",
                remedy="Choose a name that is not a prefix of another branch's path.",
                details={"branch": name, "other": other},
            )
    return name


def name_problem(name: str) -> str | None:
    """Why a name cannot be that of a branch or a tag; None when it can."""
    if not name:
        return "it is blank"
    if len(name) > BRANCH_NAME_MAX:
        return f"it is longer than {BRANCH_NAME_MAX} characters"
    if name in RESERVED_NAMES:
        return "it is reserved"
    for part in name.split("/"):
        if not part:
            return "it has an empty path part"
        if part in {".", ".."}:
            return "it has a path part that is . or .."
        if not all(c.isalnum() or c in "._-" for c in part):
            return "it has characters other than letters, digits and . _ -"
    return None
