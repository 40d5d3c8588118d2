"""Writes the data of the demo, from a fixed seed: ``python make_knowledge.py FILE``."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any, Final

PEOPLE: Final = 40_000
DOCUMENTS: Final = 20_000
PROJECTS: Final = 500
FRIENDS: Final = 4
SUBJECTS: Final = (
    "tidal turbines", "glacier mapping", "kelp farming", "wooden bridges",
    "heat pumps", "bird migration", "soil carbon", "ferry timetables",
)  # fmt: skip
CITIES: Final = ("Oslo", "Bergen", "Rome", "Lima", "Kyoto")
ROLES: Final = ("engineer", "analyst", "agent")


def records() -> Iterator[dict[str, Any]]:
    """Every node and edge; a load needs no particular order."""
    rng = random.Random(7)
    for n in range(PROJECTS):
        yield {"type": "Project", "data": {"code": f"X{n}", "budget": rng.randrange(10**6)}}
    for n in range(PEOPLE):
        name = f"p{n}"
        data = {"name": name, "role": ROLES[n % 3], "city": rng.choice(CITIES)}
        yield {"type": "Person", "data": data}
        yield {"edge": "WorksOn", "from": name, "to": f"X{rng.randrange(PROJECTS)}"}
        for _ in range(FRIENDS):
            friend = f"p{rng.randrange(PEOPLE)}"
            since = rng.randrange(1990, 2026)
            yield {"edge": "Knows", "from": name, "to": friend, "data": {"since": since}}
    for n in range(DOCUMENTS):
        yield {"type": "Document", "data": _document(rng, n)}
        yield {"edge": "Wrote", "from": f"p{rng.randrange(PEOPLE)}", "to": f"doc-{n}"}


def _document(rng: random.Random, number: int) -> dict[str, Any]:
    """A text about one subject that mentions another, and a vector to match."""
    main, side = rng.sample(range(len(SUBJECTS)), 2)
    vector = [round(rng.uniform(0, 0.1), 3) for _ in SUBJECTS]
    vector[main] += 1.0
    vector[side] += 0.3
    return {
        "slug": f"doc-{number}",
        "title": f"Notes on {SUBJECTS[main]} ({number})",
        "body": f"What we learned about {SUBJECTS[main]}, and a word on {SUBJECTS[side]}.",
        "topic": vector,
    }


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.writelines(json.dumps(record) + "\n" for record in records())
