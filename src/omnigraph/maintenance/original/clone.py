"""Brings a graph of the original over to another place: copies its files and converts the copy.

The source is read only. Its files are copied before the newest version of main's manifest, which
makes the copy a graph; until then the target is empty to every reader. From then on the copy is an
original, and a conversion that is cut short is finished by ``omnigraph upgrade --apply``.
"""

from __future__ import annotations

import re
from typing import Final

from omnigraph.catalog.branches.registry import all_branches
from omnigraph.catalog.original.layout import CONVERTED_PREFIX, REFS, ref_name
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import BackupRefused
from omnigraph.maintenance.backup import CopyReport
from omnigraph.maintenance.original.upgrade import convert_original
from omnigraph.maintenance.original.watch import being_written, require_quiet, signs_of_writers
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.fsync import VERSION_HINT
from omnigraph.storage.lance.files.relocation import relocated, split_base
from omnigraph.storage.lance.tables import version_file
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.copy import copy_object
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore

_OF_FORK: Final = re.compile(r"(?P<table>.+?)/tree/.+/_versions/[^/]+\.manifest")
_OF_MAIN: Final = re.compile(rf"{MANIFEST_PATH}/_versions/[^/]+\.manifest")


def clone_original(repository: Repository, target: Location) -> CopyReport:
    """Copy an original to an empty location and convert the copy."""
    source = repository.objects
    objects = open_objects(target, repository.settings.storage)
    before = require_quiet(source, repository.settings.limits.upgrade_watch_s)
    listed = [info for info in source.list() if not _is_left_out(info.path)]
    _require_free(objects, {info.path for info in listed})
    objects.ensure_writable()
    state = repository.main.current()
    head = f"{MANIFEST_PATH}/_versions/{version_file(state.version)}"
    copied = 0
    for info in listed:
        if not _OF_MAIN.fullmatch(info.path):
            _copy(source, objects, info)
            copied += info.size
    hit("copy.after_files")
    if signs_of_writers(source) != before:
        raise being_written(source)
    hit("copy.before_head")
    copy_object(source, objects, head)
    hit("copy.after_head")
    made = Repository(target, objects=objects, settings=repository.settings)
    convert_original(made)
    now = made.main.current()
    return CopyReport(target.uri, now.head.commit_id, len(all_branches(now)), len(listed), copied)


def _is_left_out(path: str) -> bool:
    """Hints of the newest version, and refs that an unfinished conversion left."""
    converted = f"tree/{CONVERTED_PREFIX}" in path
    if path.startswith(REFS):
        converted = ref_name(path).startswith(CONVERTED_PREFIX)
    return path.endswith(VERSION_HINT) or converted


def _require_free(objects: ObjectStore, wanted: set[str]) -> None:
    """Raise unless the target is empty or holds what an interrupted copy left."""
    there = {info.path for info in objects.list()}
    if there - wanted or any(_OF_MAIN.fullmatch(path) for path in there):
        uri = objects.location.uri
        raise BackupRefused(f"{uri} is not empty", details={"uri": uri})


def _copy(source: ObjectStore, target: ObjectStore, info: ObjectInfo) -> None:
    """Copy one object; versions of branches refer to the files of the copy."""
    fork = _OF_FORK.fullmatch(info.path)
    if fork is None:
        copy_object(source, target, info.path)
        return
    root = target.location.uri
    data = source.get(info.path)
    target.put(info.path, relocated(data, lambda base: root + split_base(base, fork["table"])[1]))
