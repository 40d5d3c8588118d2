"""Finds calls that would move a Lance table's HEAD, by reading source code.

Python cannot tell what an expression will be, so the rules lean to the strict side: names that only
Lance has are found on any receiver, names that others have, too (``commit``, ``delete``, ...) on
receivers that look like a Lance dataset.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Methods and functions that only Lance has and that commit, or that are traps when staged.
LANCE_ONLY = frozenset(
    {
        "add_bases",
        "alter_columns",
        "checkout_latest",
        "cleanup_old_versions",
        "commit_batch",
        "commit_existing_index_segments",
        "compact_files",
        "create_scalar_index",
        "drop_index",
        "from_pydantic_model",
        "initialize_mem_wal",
        "mem_wal_writer",
        "merge_index_metadata",
        "merge_insert",
        "migrate_manifest_paths_v2",
        "optimize_indices",
        "replace_field_metadata",
        "replace_schema",
        "replace_schema_metadata",
        "shallow_clone",
        "update_config",
        "update_field_metadata",
        "update_metadata",
        "update_schema_metadata",
        "write_dataset",
    }
)
# Methods with everyday names that commit when the receiver is a dataset, or belongs to one.
ON_A_DATASET = frozenset(
    {
        "add_columns",
        "commit",
        "create",
        "create_branch",
        "create_index",
        "delete",
        "delete_config_keys",
        "drop",
        "drop_columns",
        "deep_clone",
        "execute",
        "insert",
        "merge",
        "optimize",
        "replace_metadata",
        "restore",
        "truncate_table",
        "update",
    }
)
# Methods that we call and that borrow the dataset object mutably: on one that threads share, they
# and every concurrent call fail. ``tests/guards/test_mutable_borrows.py`` shows it.
BORROWS_MUTABLY = frozenset(
    {"create_branch", "create_index_uncommitted", "get_transactions", "read_transaction"}
)
PRIVATE = "private_dataset"  # the one function that gives an object of one's own
# Classes of Lance whose functions commit, and operations that are never issued at all.
COMMITTING_CLASSES = {"LanceDataset": {"commit", "drop"}, "Compaction": {"commit", "execute"}}
FORBIDDEN_OPERATIONS = frozenset({"Append"})  # slips through a strict update: see tests/guards
DATASET_NAMES = frozenset({"dataset", "ds", "lance_dataset", "_ds"})
DATASET_MAKERS = frozenset({"dataset", "LanceDataset", "checkout_version", PRIVATE})


@dataclass(frozen=True, slots=True)
class Finding:
    """A call that only the one committing module may make."""

    line: int
    what: str


def committing_calls(source: str) -> list[Finding]:
    """Every finding in one module's source."""
    tree = ast.parse(source)
    known = _dataset_variables(tree)
    found = {Finding(node.lineno, what) for node, what in _findings(tree, known)}
    return sorted(found, key=lambda finding: (finding.line, finding.what))


def calls_on_shared_datasets(source: str) -> list[Finding]:
    """Calls that borrow a dataset mutably, or commit to it, on any object but a private one."""
    tree = ast.parse(source)
    known, private = _dataset_variables(tree), _private_variables(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in BORROWS_MUTABLY:
            ours = node.attr in ON_A_DATASET and not _is_dataset(node.value, known)
            if not ours and not _is_private(node.value, private):
                found.append(Finding(node.lineno, node.attr))
        elif isinstance(node, ast.Call) and _is_commit(node):
            target = node.args[0]
            if not (_is_private(target, private) or _last_name(target) == "uri"):
                found.append(Finding(node.lineno, "commit"))
    return found


def _private_variables(tree: ast.Module) -> set[str]:
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    mine = [node for node in assigned if _is_private(node.value, set())]
    names = {t.id for node in mine for t in node.targets if isinstance(t, ast.Name)}
    others = [node for node in assigned if node not in mine]
    return names - {t.id for node in others for t in node.targets if isinstance(t, ast.Name)}


def _is_private(node: ast.expr, private: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in private
    return isinstance(node, ast.Call) and _last_name(node.func) == PRIVATE


def _is_commit(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "commit"
        and _last_name(function.value) == "LanceDataset"
    )


def modules(root: Path) -> Iterator[Path]:
    """The modules of a source tree, in order."""
    yield from sorted(root.rglob("*.py"))


def _findings(tree: ast.Module, known: set[str]) -> Iterator[tuple[ast.expr | ast.ImportFrom, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            problem = _attribute_problem(node, known)
            if problem:
                yield node, problem
        elif isinstance(node, ast.Name) and node.id in LANCE_ONLY:
            yield node, node.id
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            yield from ((node, f"import of {name}") for name in sorted(names & LANCE_ONLY))
        elif isinstance(node, ast.Call) and _is_getattr_of(node):
            yield node, f"getattr of {ast.literal_eval(node.args[1])}"


def _attribute_problem(node: ast.Attribute, known: set[str]) -> str | None:
    owner = _last_name(node.value)
    if node.attr in LANCE_ONLY:
        return node.attr
    if owner in COMMITTING_CLASSES and node.attr in COMMITTING_CLASSES[owner]:
        return f"{owner}.{node.attr}"
    if owner == "LanceOperation" and node.attr in FORBIDDEN_OPERATIONS:
        return f"LanceOperation.{node.attr}"
    if node.attr in ON_A_DATASET and _is_dataset(node.value, known):
        return f"dataset.{node.attr}"
    return None


def _is_dataset(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression looks like a Lance dataset, or like its tags, branches, optimizer."""
    if isinstance(node, ast.Name):
        return node.id in DATASET_NAMES or node.id in known
    if isinstance(node, ast.Attribute):
        if node.attr in {"tags", "branches", "optimize"}:
            return _is_dataset(node.value, known)
        return node.attr in DATASET_NAMES
    if isinstance(node, ast.Call):
        return _last_name(node.func) in DATASET_MAKERS
    if isinstance(node, ast.NamedExpr):
        return _is_dataset(node.value, known)
    return False


def _dataset_variables(tree: ast.Module) -> set[str]:
    """Names that are bound to something that looks like a dataset, until none is added."""
    known: set[str] = set()
    while True:
        before = len(known)
        for node in ast.walk(tree):
            known.update(_bound_by(node, known))
        if len(known) == before:
            return known


def _bound_by(node: ast.AST, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Assign) and _is_dataset(node.value, known):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        if _names_dataset(node.annotation) or (node.value and _is_dataset(node.value, known)):
            yield node.target.id
    elif isinstance(node, ast.NamedExpr) and _is_dataset(node.value, known):
        yield node.target.id
    elif isinstance(node, ast.arg) and node.annotation and _names_dataset(node.annotation):
        yield node.arg


def _names_dataset(annotation: ast.expr) -> bool:
    return "LanceDataset" in ast.unparse(annotation)


def _is_getattr_of(node: ast.Call) -> bool:
    if _last_name(node.func) != "getattr" or len(node.args) < 2:
        return False
    name = node.args[1]
    return isinstance(name, ast.Constant) and name.value in LANCE_ONLY | {"commit", "restore"}


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None
