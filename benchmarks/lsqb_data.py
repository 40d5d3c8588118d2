"""A made-up social network with the shape of LSQB's data: who knows whom, forums, posts, replies.

Sizes and skews follow the social network benchmark at scale factor 0.1, about a million nodes and
edges. Friends mostly live in one country and share friends, most posts stand in few forums,
comments are mostly written by friends of whom they reply to, and replies often repeat a tag.
Seeded: it is always the same graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED: Final = 11
COUNTRIES: Final = 111
CITIES: Final = 1_343
TAG_CLASSES: Final = 71
TAGS: Final = 16_080
PERSONS: Final = 1_700
FORUMS: Final = 13_750
POSTS: Final = 135_700
COMMENTS: Final = 151_000
KNOWS: Final = 16_000
"""Friendships that are drawn; a few are drawn twice."""
INTERESTS: Final = 39_000
MEMBERS: Final = 123_000
LIKES: Final = 170_000

Pairs = tuple[Any, Any]
_Random = np.random.Generator


def make_files(folder: Path) -> None:
    """Write every node and edge type as Parquet, unless they are there."""
    if (folder / "likes.parquet").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    sizes = {
        "country": COUNTRIES,
        "city": CITIES,
        "tagclass": TAG_CLASSES,
        "tag": TAGS,
        "person": PERSONS,
        "forum": FORUMS,
    }
    for name, size in sizes.items():
        _write(folder, name, id=np.arange(size))
    is_post = np.arange(POSTS + COMMENTS) < POSTS
    _write(folder, "message", id=np.arange(POSTS + COMMENTS), post=is_post)
    for name, (source, target) in _edges(rng).items():
        _write(folder, name, src=source, dst=target)


def _write(folder: Path, name: str, **columns: Any) -> None:
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _edges(rng: _Random) -> dict[str, Pairs]:
    country_of_city = _skewed(rng, CITIES, COUNTRIES, 0.8)
    city_of_person = _skewed(rng, PERSONS, CITIES, 0.5)
    knows = _friends(rng, country_of_city[city_of_person])
    post_creator = _skewed(rng, POSTS, PERSONS, 0.6)
    parent, comment_creator = _replies(rng, knows, post_creator)
    return {
        "city_in": (np.arange(CITIES), country_of_city),
        "lives_in": (np.arange(PERSONS), city_of_person),
        "knows": knows,
        "tag_type": (np.arange(TAGS), _skewed(rng, TAGS, TAG_CLASSES, 1.0)),
        "interest": _pairs(
            _skewed(rng, INTERESTS, PERSONS, 0.4), _skewed(rng, INTERESTS, TAGS, 0.8)
        ),
        "member": _pairs(_skewed(rng, MEMBERS, FORUMS, 0.7), _skewed(rng, MEMBERS, PERSONS, 0.5)),
        "contains": (_skewed(rng, POSTS, FORUMS, 0.6), np.arange(POSTS)),
        "created": (np.arange(POSTS + COMMENTS), np.concatenate((post_creator, comment_creator))),
        "reply": (np.arange(POSTS, POSTS + COMMENTS), parent),
        "has_tag": _message_tags(rng, parent),
        "likes": _pairs(
            _skewed(rng, LIKES, PERSONS, 0.4), _skewed(rng, LIKES, POSTS + COMMENTS, 0.4)
        ),
    }


def _skewed(rng: _Random, count: int, size: int, skew: float) -> Any:
    """Numbers below ``size``, some of them much more often than others (a power law)."""
    shares = np.arange(1, size + 1, dtype=float) ** -skew
    return rng.permutation(size)[rng.choice(size, count, p=shares / shares.sum())]


def _pairs(first: Any, second: Any) -> Pairs:
    """Every pair once."""
    keys = np.unique(first.astype(np.int64) << 32 | second)
    return keys >> 32, keys & 0xFFFFFFFF


def _friends(rng: _Random, country: Any) -> Pairs:
    """Pairs of persons, each once: three of four within a country, where neighbours in a random
    order are friends more often, which closes triangles.
    """
    person = _skewed(rng, KNOWS, PERSONS, 0.5)
    order = np.lexsort((rng.random(PERSONS), country))
    place = np.empty(PERSONS, dtype=np.int64)
    place[order] = np.arange(PERSONS)
    near = order[
        (place[person] + rng.geometric(0.06, KNOWS) * rng.choice((-1, 1), KNOWS)) % PERSONS
    ]
    friend = np.where(rng.random(KNOWS) < 0.75, near, _skewed(rng, KNOWS, PERSONS, 0.5))
    low, high = np.minimum(person, friend), np.maximum(person, friend)
    return _pairs(low[low != high], high[low != high])


def _replies(rng: _Random, knows: Pairs, post_creator: Any) -> Pairs:
    """What each comment replies to, a post or an earlier comment, and who wrote it."""
    both = np.concatenate((np.stack(knows), np.stack(knows[::-1])), axis=1)
    both = both[:, np.argsort(both[0], kind="stable")]
    starts = np.searchsorted(both[0], np.arange(PERSONS + 1))
    to_post = rng.random(COMMENTS) < 0.5
    popular = _skewed(rng, COMMENTS, POSTS, 0.4)
    earlier = POSTS + (rng.random(COMMENTS) * np.arange(COMMENTS)).astype(np.int64)
    parent = np.where(to_post | (np.arange(COMMENTS) == 0), popular, earlier)
    creator = np.concatenate((post_creator, np.zeros(COMMENTS, dtype=np.int64)))
    lots, by_friend = rng.random(COMMENTS), rng.random(COMMENTS) < 0.8
    strangers = _skewed(rng, COMMENTS, PERSONS, 0.5)
    for at in range(COMMENTS):  # a comment's author depends on the author of what it replies to
        author = creator[parent[at]]
        first, last = starts[author], starts[author + 1]
        friend = both[1, first + int(lots[at] * (last - first))] if last > first else strangers[at]
        creator[POSTS + at] = friend if by_friend[at] else strangers[at]
    return parent, creator[POSTS:]


def _message_tags(rng: _Random, parent: Any) -> Pairs:
    """Tags of messages: most posts have none, some have several; a third of the tags of a comment
    is a tag of what it replies to.
    """
    messages = POSTS + COMMENTS
    wanted = np.where(
        np.arange(messages) < POSTS, rng.poisson(0.8, messages), rng.poisson(1.2, messages)
    )
    message = np.repeat(np.arange(messages), wanted)
    tag = _skewed(rng, len(message), TAGS, 0.9)
    first = np.full(messages, -1)
    first[message[::-1]] = tag[::-1]
    is_comment = message >= POSTS
    repeated = np.full(len(message), -1)
    repeated[is_comment] = first[parent[message[is_comment] - POSTS]]
    repeats = (rng.random(len(message)) < 0.33) & (repeated >= 0)
    return _pairs(message, np.where(repeats, repeated, tag))
