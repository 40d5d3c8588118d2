"""Rewrites what is generated: ``python -m tests.docs.generate``.

A generated part stands between ``<!-- generated: module:function -->`` and
``<!-- end of generated part -->``; the function returns its text.
``test_generated.py`` fails when anything is out of date.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PART = re.compile(
    r"(<!-- generated: ([\w.]+):(\w+) -->\n).*?(<!-- end of generated part -->)", re.DOTALL
)


def regenerate(text: str) -> str:
    """A page with its generated parts regenerated."""

    def fill(match: re.Match[str]) -> str:
        content: str = getattr(import_module(match[2]), match[3])()
        return f"{match[1]}\n{content.strip()}\n\n{match[4]}"

    return PART.sub(fill, text)


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def main() -> None:
    for page in pages():
        _bring_up_to_date(page, regenerate(page.read_text("utf-8")))


def _bring_up_to_date(file: Path, text: str) -> None:
    if not file.exists() or file.read_text("utf-8") != text:
        file.write_text(text, "utf-8")
        print(f"updated {file}")


if __name__ == "__main__":
    main()
