"""Local directories as an object store: a lock, a capability probe and durable writes.

Temporary names end in ``#`` and digits, the form that obstore and Lance reserve for temporary
files: listings omit them and no object can have such a name. Only the object adapter imports this
module, and nothing runs before the first write to a directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator

from omnigraph.errors import UnsupportedLocation
from omnigraph.model.retry import poll_policy

try:
    import fcntl
except ImportError:  # Windows: graphs on object stores work, a local directory is refused
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = ".objects.lock#0"
LOCK_POLL = poll_policy(0.002, 30.0)  # the timeout of a request to a store on the network

_NO_EXCLUSIVE_CREATE = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL, errno.EXDEV}
)
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows has no such flag, and inherits nothing
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)

_probed: set[str] = set()


@contextlib.contextmanager
def locked(root: str) -> Iterator[None]:
    """Hold the directory's lock: one holder among all threads and processes of the machine.

    The file is never removed, so that two holders cannot lock two different files of that name. The
    lock is held for one small write; waiting for a holder that hangs ends with a timeout.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    handle = os.open(os.path.join(root, LOCK_NAME), os.O_RDWR | os.O_CREAT | _CLOEXEC, 0o666)
    try:
        _lock(handle)
        try:
            yield
        finally:
            # Closing is not enough: a child process forked meanwhile shares the handle and would
            # keep the lock.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    retry = LOCK_POLL.start()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not retry.again():
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None


def is_file(path: str) -> bool | None:
    """Whether a regular file exists; None when ``stat`` fails or it is another kind of file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return True if stat.S_ISREG(mode) else None


def probe(root: str) -> None:
    """Create the directory and refuse it unless exclusive create and locks work there.

    Checked once per process and directory. Exclusive create uses hard links, which some network
    and removable filesystems lack; without them two writers could both win.
    """
    if root in _probed and os.path.isdir(root):
        return
    _make_directories(root)
    first, second = (os.path.join(root, f".probe-{uuid.uuid4().hex}#{n}") for n in (0, 1))
    os.close(os.open(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o666))
    try:
        _require_exclusive_create(root, first, second)
        _require_locks(root)
    finally:
        for path in (first, second):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    _probed.add(root)


def _require_exclusive_create(root: str, source: str, target: str) -> None:
    exclusive = False
    try:
        os.link(source, target)
        os.link(source, target)
    except FileExistsError:
        exclusive = True
    except OSError as error:
        if error.errno not in _NO_EXCLUSIVE_CREATE:
            raise
    if not exclusive:
        raise UnsupportedLocation(
            f"the filesystem of {root} cannot create a file exclusively (it lacks hard links), "
            "so concurrent writers would not be safe there",
            remedy="Put the graph on a local POSIX filesystem such as ext4, xfs or APFS, or on S3.",
        )


def _require_locks(root: str) -> None:
    try:
        with locked(root):
            pass
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise UnsupportedLocation(
            f"the filesystem of {root} cannot lock files, so concurrent writers would not be "
            "safe there",
            remedy="Put the graph on a local POSIX filesystem such as ext4, xfs or APFS, or on S3.",
        ) from error


def write_durably(path: str, data: bytes, *, exclusive: bool) -> None:
    """Write a file so that it survives power loss when this returns: contents, then name."""
    directory = os.path.dirname(path)
    made = _make_directories(directory)
    temporary = os.path.join(directory, f".put-{uuid.uuid4().hex}#0")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o666)
    try:
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if exclusive:
                os.link(temporary, path)
            else:
                os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    finally:
        for changed in [directory, *made]:
            sync_directory(changed)


def sync_file(path: str) -> None:
    """fsync the content of a file."""
    handle = os.open(path, os.O_RDONLY | _CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(path: str) -> None:
    """fsync the entries of a directory."""
    handle = os.open(path, os.O_RDONLY | _DIRECTORY | _CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_directories(directory: str) -> list[str]:
    """Create missing directories; returns the parents whose entries changed."""
    changed = []
    missing = directory
    while not os.path.isdir(missing):
        missing = os.path.dirname(missing)
        changed.append(missing)
    try:
        os.makedirs(directory, exist_ok=True)
    except FileExistsError:
        # The path exists and is not a directory.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
    return changed


def remove_empty_directories(path: str) -> None:
    """Remove a directory tree as far as it holds no files; an empty directory is not an object."""
    for directory, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def remove_empty_directory_at(path: str) -> None:
    """Remove an empty directory at the path of a file; raises when it is not empty."""
    if os.path.isdir(path):
        remove_empty_directories(path)
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
