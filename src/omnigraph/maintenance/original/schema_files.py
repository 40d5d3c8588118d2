"""Schema files that an interrupted schema change of an original left staged.

The original stages the three files of the new schema, publishes the tables, and puts the files in
place. Staged files of a change that was published are put in place, others are removed. Where the
tables cannot tell, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Collection

from omnigraph.catalog.original.layout import SCHEMA_FILES, SCHEMA_SOURCE, STAGING_SUFFIX
from omnigraph.errors import CorruptData, LanguageError
from omnigraph.lang.schema import accept_schema
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.objects.store import ObjectStore


def staged_files(objects: ObjectStore) -> list[str]:
    """The schema files that have a staged successor."""
    return [name for name in SCHEMA_FILES if objects.exists(f"{name}{STAGING_SUFFIX}")]


def settle(objects: ObjectStore, *, published: bool) -> None:
    """Put staged files in place, or remove them. What a crash leaves is done by the next call."""
    for name in staged_files(objects):
        hit("convert.before_schema_file")
        if published:
            objects.rename(f"{name}{STAGING_SUFFIX}", name)
        else:
            objects.delete(f"{name}{STAGING_SUFFIX}")


def was_published(objects: ObjectStore, tables: Collection[str]) -> bool:
    """Whether the change that staged files belongs to was published, to judge by these tables."""
    staged = staged_files(objects)
    if SCHEMA_SOURCE not in staged:
        return True  # its first file is in place already, so it was
    texts = [objects.get(name).decode() for name in (SCHEMA_SOURCE, f"{SCHEMA_SOURCE}.staging")]
    if texts[0] == texts[1]:
        return False  # either way the same
    live, new = (_types(text) for text in texts)
    if live != new and set(tables) in (live, new):
        return set(tables) == new
    raise CorruptData(
        "an interrupted schema change left its files staged, and the tables do not tell whether it "
        "was carried out",
        remedy=f"Compare {SCHEMA_SOURCE}.staging with {SCHEMA_SOURCE}: remove the staged files to "
        "keep the schema, or put them in place of the others. Nothing was changed.",
        details={"staged": staged},
    )


def _types(text: str) -> set[str]:
    try:
        return {kind.key for kind in accept_schema(text, mint=new_ulid).types()}
    except LanguageError as problem:
        raise CorruptData(f"a schema file is not a schema: {problem.message}") from problem
