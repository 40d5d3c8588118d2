"""``__all__``, the signatures of the handle, their docstrings and the reference agree."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from tests.docs.generate import DOCS
from tests.docs.python_reference import HANDLE, OPENING, public_members

import omnigraph
from omnigraph import errors

REFERENCE = (DOCS / "reference" / "python.md").read_text("utf-8")
STANDARD = {"Any", "None", "Callable", "Collection", "Iterable", "Iterator", "Mapping", "Sequence"}
STANDARD |= {"AbstractContextManager", "PathLike", "Event"}


def functions() -> dict[str, Any]:
    """The public functions of the package and the public methods of the handle, by name."""
    found = {name: getattr(omnigraph, name) for name in OPENING}
    for class_name in HANDLE:
        for name, member in public_members(getattr(omnigraph, class_name)):
            if inspect.isfunction(member):
                found[f"{class_name}.{name}"] = member
    return found


FUNCTIONS = functions()


def test_every_exported_name_exists_and_is_listed_by_dir() -> None:
    assert len(set(omnigraph.__all__)) == len(omnigraph.__all__)
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
    assert set(omnigraph.__all__) <= set(dir(omnigraph))
    with pytest.raises(AttributeError):
        _ = omnigraph.nothing  # type: ignore[attr-defined]


def test_every_exported_name_is_in_the_reference_and_no_other() -> None:
    headings = set(re.findall(r"^##+ (?:omnigraph\.)?(\w+)$", REFERENCE, re.MULTILINE))
    assert headings == set(omnigraph.__all__) - {"__version__", "errors"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_type_in_a_public_signature_is_exported(name: str) -> None:
    named = {
        word
        for text in FUNCTIONS[name].__annotations__.values()
        for word in re.findall(r"\b[A-Z]\w+", str(text))
    }
    assert named - STANDARD - set(omnigraph.__all__) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_documents_its_parameters_result_errors_and_use(name: str) -> None:
    function = FUNCTIONS[name]
    text = inspect.getdoc(function) or ""
    parameters = [one for one in inspect.signature(function).parameters if one != "self"]
    documented = re.findall(r"^    \*{0,2}(\w+): ", _section(text, "Args"), re.MULTILINE)
    assert documented == parameters
    if function.__annotations__["return"] != "None":
        assert _section(text, "Returns")
    for error in re.findall(r"^    (\w+): ", _section(text, "Raises"), re.MULTILINE):
        assert issubclass(getattr(errors, error), errors.OmnigraphError)
    assert ">>>" in _section(text, "Example")


def test_every_error_class_is_a_name_of_the_errors_module() -> None:
    for path in (Path(omnigraph.__file__).parent / "errors").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                assert hasattr(errors, node.name), node.name


def test_the_package_is_typed() -> None:
    assert (Path(omnigraph.__file__).parent / "py.typed").is_file()


def _section(text: str, name: str) -> str:
    return text.partition(f"\n{name}:\n")[2].partition("\n\n")[0]
