"""The reference pages say what the program does."""

from __future__ import annotations

import re

from tests.docs.generate import DOCS
from tests.docs.reference_tables import error_classes

ROOT = DOCS.parent


def test_every_error_has_a_code_a_status_and_a_remedy() -> None:
    for kind in error_classes():
        assert re.fullmatch(r"[a-z_]+", kind.code), kind
        assert 400 <= kind.status < 600, kind
        assert kind.default_remedy.endswith("."), kind


def test_every_setting_is_documented() -> None:
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text()
    named = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\"((?:OMNIGRAPH|AWS)_[A-Z_0-9]+)\"", path.read_text())
    }
    assert named
    assert {name for name in named if f"`{name}`" not in settings} == set()


def test_the_commands_of_the_readme_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    cli = (ROOT / "docs" / "reference" / "cli.md").read_text()
    commands = re.findall(r"^omnigraph (\w+)", readme, re.MULTILINE)
    assert commands
    assert all(f"## omnigraph {name}" in cli for name in commands)
