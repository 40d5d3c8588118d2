"""The examples of the Spark guide by section, with addresses replaced by existing ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "spark.md"
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  rank: F64?
  bio: String?
  v: Vector(4)? @embed("bio")
}
edge Knows: Person -> Person
"""
ELSEWHERE = ("On a cluster", "Over Spark Connect", "A warm Spark server")
"""Sections that need something running; the others need nothing."""


def sections() -> dict[str, list[tuple[str, str]]]:
    """The examples of each section: language and text."""
    parts = re.split(r"^## (.*)$", GUIDE.read_text(), flags=re.MULTILINE)
    return {
        title: re.findall(r"^```(sh|python)\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def run_section(
    title: str, place: Path, swap: Mapping[str, str], **environ: str
) -> list[subprocess.CompletedProcess[str]]:
    """Run every example of a section as a user would, in a directory, as processes of their own."""
    done = []
    for language, text in sections()[title]:
        for shown, real in swap.items():
            text = text.replace(shown, real)
        command = ["sh", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        given = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), **environ}
        ended = subprocess.run(command, cwd=place, env=given, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        done.append(ended)
    return done
