"""Generated parts of the documentation are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.generate import PART, pages, regenerate

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text("utf-8")
    assert regenerate(text) == text, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_opened_part_is_closed(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("<!-- generated:") == len(PART.findall(text))
