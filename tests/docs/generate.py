"""Rewrites the generated parts of the documentation: ``python -m tests.docs.generate``.

A generated part stands between ``<!-- generated: module:function -->`` and
``<!-- end of generated part -->``; the function returns its text. ``test_generated.py`` fails when
a part is out of date.
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
    """A page with its generated parts brought up to date."""

    def fill(match: re.Match[str]) -> str:
        content: str = getattr(import_module(match[2]), match[3])()
        return f"{match[1]}\n{content.strip()}\n\n{match[4]}"

    return PART.sub(fill, text)


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def main() -> None:
    for page in pages():
        before = page.read_text("utf-8")
        after = regenerate(before)
        if after != before:
            page.write_text(after, "utf-8")
            print(f"updated {page}")


if __name__ == "__main__":
    main()
