"""Draw the newest run record of ``peers`` as ``docs/images/peers.svg``: how many times as fast.

``python -m benchmarks.plot``. Numbers come from the record alone; its name stands in the picture.
"""

from __future__ import annotations

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import FASTER
from benchmarks.record import RECORDS, ROOT

PICTURE: Final = ROOT / "docs" / "images" / "peers.svg"
COLOURS: Final = {"kuzu": "#c2571a", "ladybug": "#8a2f6b", "duckdb": "#3b6ea5"}
TITLES: Final = {"small": "200k nodes, 2M edges", "large": "1M nodes, 10M edges"}
TICKS: Final = (0.5, 1, 2, 5, 10, 100, 1_000, 10_000)
LEFT, TOP, WIDTH, ROW = 110, 70, 330, 22
GAP = 60


def newest_record() -> Path | None:
    found = sorted(RECORDS.glob("peers-*.json"))
    return found[-1] if found else None


def draw(name: str, numbers: dict[str, Any]) -> str:
    """The picture as SVG text: one dot for each peer and query, on a scale of powers."""
    sizes = [size for size in TITLES if f"{size}/point/kuzu" in numbers]
    height = TOP + ROW * len(FASTER) + 60
    width = LEFT + (WIDTH + GAP) * len(sizes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        _text(LEFT, 20, "times as fast as each peer (median, same run)", size=14),
        *_legend(),
    ]
    for at, size in enumerate(sizes):
        parts += _panel(LEFT + at * (WIDTH + GAP), size, numbers)
    for row, query in enumerate(FASTER):
        parts.append(_text(LEFT - 10, _y(row) + 4, query, anchor="end"))
    parts.append(_text(LEFT, height - 10, f"record {name}", size=10, fill="#666"))
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: float, size: str, numbers: dict[str, Any]) -> list[str]:
    bottom = _y(len(FASTER) - 1) + ROW / 2
    parts = [_text(left, 62, TITLES[size])]
    for tick in TICKS:
        x = left + _x(tick)
        shade = "#888" if tick == 1 else "#e4e4e4"
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{shade}"/>')
        parts.append(_text(x, bottom + 16, f"{tick:g}x", anchor="middle", size=10))
    for row, query in enumerate(FASTER):
        for peer, colour in COLOURS.items():
            share = numbers[f"{size}/{query}/{peer}"]
            x = left + _x(1 / max(share, 1 / TICKS[-1]))
            parts.append(f'<circle cx="{x:.1f}" cy="{_y(row)}" r="5" fill="{colour}"/>')
    return parts


def _legend() -> list[str]:
    parts = []
    for at, (peer, colour) in enumerate(COLOURS.items()):
        x = LEFT + at * 90
        parts.append(f'<circle cx="{x + 5}" cy="38" r="5" fill="{colour}"/>')
        parts.append(_text(x + 16, 42, peer))
    return parts


def _x(faster: float) -> float:
    low, high = math.log10(TICKS[0]), math.log10(TICKS[-1])
    return WIDTH * min(1.0, max(0.0, (math.log10(faster) - low) / (high - low)))


def _y(row: int) -> float:
    return TOP + ROW * row + ROW / 2


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, fill: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{fill}">{escape(text)}</text>'
    )


def main() -> int:
    path = newest_record()
    if path is None:
        print("there is no record of peers to draw", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(path.name, json.loads(path.read_text())["numbers"]))
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
