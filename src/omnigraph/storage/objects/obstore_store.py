"""The implementation of ``ObjectStore`` over obstore, for local directories, S3 and memory.

Owns what obstore lacks: the backend of a location, conditional replace on local directories,
resolving lost responses on the network, and the translation of errors. Open it through
:func:`open_objects`. It must never cache objects: instances are interchangeable.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import os
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any

import obstore
from obstore import store as stores

from omnigraph.errors import (
    ObjectChanged,
    ObjectExists,
    ObjectNotFound,
    OmnigraphError,
    OutcomeUnknown,
    StorageFailure,
)
from omnigraph.model.retry import RetryPolicy
from omnigraph.settings import Durability, StorageSettings
from omnigraph.storage.locations import Location
from omnigraph.storage.objects import local_files
from omnigraph.storage.objects.errors import storage_error
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore, check_object_path

# Control objects are small: slower requests are cancelled.
REQUEST_TIMEOUT = timedelta(seconds=30)
CONNECT_TIMEOUT = timedelta(seconds=5)
# Attempts per call, with exponential backoff and jitter: at most 1.5 seconds of pauses.
ATTEMPTS_MAX = 5
BACKOFF = timedelta(seconds=0.1)
WRITE_RETRY = RetryPolicy(base_s=BACKOFF.total_seconds(), attempts_max=ATTEMPTS_MAX, jitter=0.5)

# An attribute of every object on a network store, by which a writer recognises its own write.
_CLAIM = "omnigraph-claim"

_memory_stores: dict[str, Any] = {}
_memory_lock = threading.Lock()


class ObstoreObjects:
    """Objects below one location: thread-safe and picklable."""

    def __init__(self, location: Location, options: dict[str, str], durability: Durability) -> None:
        self.location = location
        self._options = options
        self._durability = durability
        self._root = location.path if location.is_local else None
        self._prefix = location.path.strip("/")
        self._bucket_seen = location.scheme != "s3"
        if self._root is None:
            _ = self._reader  # raises on invalid options

    def __reduce__(self) -> tuple[Any, ...]:
        return (ObstoreObjects, (self.location, self._options, self._durability))

    def __repr__(self) -> str:
        return f"ObstoreObjects({self.location.uri!r})"

    @cached_property
    def _backends(self) -> tuple[Any, Any]:
        return _open_backends(self.location, self._options)

    @property
    def _reader(self) -> Any:
        return self._backends[0]

    @property
    def _writer(self) -> Any:
        return self._backends[1]

    def get(self, path: str) -> bytes:
        return self._read(path)[0]

    def get_range(self, path: str, start: int, size: int) -> bytes:
        if not size:
            return b""
        with self._translated("read", path, writing=False):
            found = obstore.get_range(self._reader, self._key(path), start=start, length=size)
            self._bucket_seen = True
            return bytes(found)

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        data, e_tag = self._read(path)
        return data, self._tag(data, e_tag)

    def exists(self, path: str) -> bool:
        if self._root is not None:
            # Every query probes for a newer version: a stat is ten times faster than a request.
            found = local_files.is_file(f"/{self._key(path)}")
            if found is not None:
                return found
        try:
            with self._translated("look up", path, writing=False):
                obstore.head(self._reader, self._key(path))
        except ObjectNotFound:
            if not self._bucket_seen:
                # A HEAD request does not distinguish a missing object from a missing bucket; a list
                # does.
                self.list(path)
            return False
        self._bucket_seen = True
        return True

    def size(self, path: str) -> int:
        with self._translated("look up", path, writing=False):
            return int(obstore.head(self._reader, self._key(path))["size"])

    def list(self, prefix: str = "") -> builtins.list[ObjectInfo]:
        key = self._key(prefix) if prefix else self._prefix
        cut = len(self._prefix) + 1 if self._prefix else 0
        try:
            with self._translated("list", prefix, writing=False):
                chunks = [*obstore.list(self._reader, key or None)]
        except ObjectNotFound:
            return []
        self._bucket_seen = True
        found = [
            ObjectInfo(meta["path"][cut:], meta["size"], meta["last_modified"])
            for chunk in chunks
            for meta in chunk
        ]
        return sorted(found, key=lambda info: info.path)

    def ensure_writable(self) -> None:
        if self._root is not None:
            with self._translated("prepare", "", writing=True):
                local_files.probe(self._root)

    def put(self, path: str, data: bytes) -> None:
        key = self._key(path)
        self.ensure_writable()
        with self._translated("write", path, writing=True), self._locked():
            self._write(key, path, data, "overwrite")

    def put_if_absent(self, path: str, data: bytes) -> None:
        key = self._key(path)
        self.ensure_writable()
        with self._translated("create", path, writing=True):
            self._write(key, path, data, "create")

    def replace(self, path: str, data: bytes, tag: str) -> None:
        key = self._key(path)
        if self._root is None:
            with self._translated("replace", path, writing=True):
                self._write(key, path, data, {"e_tag": tag})
            return
        self.ensure_writable()
        with self._translated("replace", path, writing=True), self._locked():
            try:
                unchanged = self._tag(*self._read(path)) == tag
            except ObjectNotFound:
                unchanged = False
            if not unchanged:
                raise ObjectChanged(
                    f"{self._shown(path)} was changed since it was read", details={"object": path}
                )
            self._write(key, path, data, "overwrite")

    def delete(self, path: str) -> None:
        key = self._key(path)
        # Deletion is idempotent, so a lost response is an ordinary failure: not `writing`.
        with (
            contextlib.suppress(ObjectNotFound),
            self._translated("delete", path, writing=False),
            self._locked(),
        ):
            obstore.delete(self._reader, key)
            self._make_durable(key)

    def delete_prefix(self, prefix: str) -> None:
        paths = [info.path for info in self.list(prefix)]
        if self.location.scheme == "s3":
            with self._translated("delete", prefix, writing=False):
                obstore.delete(self._reader, [self._key(path) for path in paths])
            return
        for path in paths:
            self.delete(path)
        if self._root is not None:
            with self._translated("delete", prefix, writing=False):
                local_files.remove_empty_directories(os.path.join(self._root, prefix))

    def rename(self, source: str, target: str) -> None:
        source_key, target_key = self._key(source), self._key(target)
        if source_key == target_key:
            # Most stores copy and then delete, and would delete the only copy.
            self.get(source)
            return
        self.ensure_writable()
        with self._translated("rename", source, writing=True), self._locked():
            if self._root is not None:
                local_files.remove_empty_directory_at(f"/{target_key}")
            obstore.rename(self._reader, source_key, target_key)
            self._make_durable(target_key, source_key)

    def _read(self, path: str) -> tuple[bytes, str | None]:
        with self._translated("read", path, writing=False):
            result = obstore.get(self._reader, self._key(path))
            data = result.bytes().to_bytes()
            self._bucket_seen = True
            return data, result.meta["e_tag"]

    def _write(self, key: str, path: str, data: bytes, mode: str | dict[str, str]) -> None:
        if self._root is None:
            self._write_remote(key, path, data, mode)
            return
        file = f"/{key}"
        local_files.remove_empty_directory_at(file)
        if self._durability == "fsync":
            local_files.write_durably(file, data, exclusive=mode == "create")
        else:
            obstore.put(self._writer, key, data, mode=mode, use_multipart=False)

    def _write_remote(self, key: str, path: str, data: bytes, mode: str | dict[str, str]) -> None:
        """Write with bounded retries; a lost response is resolved by the claim on the object."""
        claim = uuid.uuid4().hex
        unsure = False
        retry = WRITE_RETRY.start()
        while True:
            failure = self._put_claimed(key, path, data, mode, claim)
            if failure is None:
                return
            if isinstance(failure, OutcomeUnknown):
                unsure = True
            elif isinstance(failure, ObjectExists | ObjectChanged):
                holder = self._holder(path, unsure)
                if holder == claim:
                    return
                if isinstance(failure, ObjectExists) and holder is not None:
                    raise failure
                if isinstance(failure, ObjectChanged):
                    break
                # Refused, but the object is gone: it was deleted concurrently. Retry.
            elif not (isinstance(failure, StorageFailure) and failure.retryable):
                break
            if not retry.again():
                break
        if unsure and self._holder(path, unsure) == claim:
            return
        raise self._unknown(path) if unsure else failure

    def _put_claimed(
        self, key: str, path: str, data: bytes, mode: str | dict[str, str], claim: str
    ) -> OmnigraphError | None:
        try:
            with self._translated("write", path, writing=True):
                attributes = {_CLAIM: claim}
                obstore.put(
                    self._writer, key, data, mode=mode, attributes=attributes, use_multipart=False
                )
        except OmnigraphError as error:
            return error
        self._bucket_seen = True
        return None

    def _holder(self, path: str, unsure: bool) -> str | None:
        """The claim of the stored object; None if there is no object."""
        try:
            with self._translated("read", path, writing=False):
                return str(obstore.get(self._reader, self._key(path)).attributes.get(_CLAIM))
        except ObjectNotFound:
            return None
        except StorageFailure as error:
            raise (self._unknown(path) if unsure else error) from error

    def _unknown(self, path: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"the store did not confirm the write of {self._shown(path)}",
            remedy="Read the object before repeating the write: it may have taken effect.",
            details={"object": path},
        )

    def _key(self, path: str) -> str:
        check_object_path(path)
        return f"{self._prefix}/{path}" if self._prefix else path

    def _shown(self, path: str) -> str:
        return f"{self.location.uri.rstrip('/')}/{path}" if path else self.location.uri

    def _tag(self, data: bytes, e_tag: str | None) -> str:
        """The tag that ``replace`` compares: the ETag, or on a local disk the SHA-256 of the
        content, because inode and modification time can repeat."""
        if self._root is not None:
            return hashlib.sha256(data).hexdigest()
        if e_tag is None:
            raise StorageFailure(
                f"the store at {self.location.uri} returns no ETags, which safe replacement needs"
            )
        return e_tag

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        if self._root is None:
            return contextlib.nullcontext()
        return local_files.locked(self._root)

    def _make_durable(self, *keys: str) -> None:
        if self._root is not None and self._durability == "fsync":
            for key in keys:
                local_files.sync_directory(os.path.dirname(f"/{key}"))

    @contextlib.contextmanager
    def _translated(self, action: str, path: str, *, writing: bool) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, NotImplementedError, obstore.exceptions.BaseError) as error:
            where = self._shown(path)
            raise storage_error(error, action=action, where=where, writing=writing) from error


def _open_backends(location: Location, options: dict[str, str]) -> tuple[Any, Any]:
    """The backend for reading and the one for writing.

    On the network, reads and deletes are idempotent and retried by obstore; writes are not, so
    :meth:`ObstoreObjects._write_remote` retries them.
    """
    if location.scheme == "file":
        store = stores.LocalStore()
        return store, store
    if location.scheme == "memory":
        with _memory_lock:
            store = _memory_stores.setdefault(location.container, stores.MemoryStore())
        return store, store
    return _open_s3(location, options, ATTEMPTS_MAX - 1), _open_s3(location, options, 0)


def _open_s3(location: Location, options: dict[str, str], retries_max: int) -> Any:
    config = {name: value for name, value in options.items() if name != "allow_http"}
    try:
        return stores.S3Store(
            location.container,
            config=config,
            client_options={
                "allow_http": options.get("allow_http", "false"),
                "timeout": REQUEST_TIMEOUT,
                "connect_timeout": CONNECT_TIMEOUT,
            },
            retry_config={
                "max_retries": retries_max,
                "retry_timeout": REQUEST_TIMEOUT * 2,
                "backoff": {"init_backoff": BACKOFF, "max_backoff": BACKOFF * 8, "base": 2},
            },
        )
    except (ValueError, obstore.exceptions.BaseError) as error:
        raise storage_error(error, action="open", where=location.uri, writing=False) from error


def open_objects(location: Location, storage: StorageSettings) -> ObjectStore:
    """The object store at a location. Opening makes no request; the first write probes it."""
    return ObstoreObjects(location, location.storage_options(storage), storage.durability)
