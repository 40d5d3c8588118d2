"""The package can be imported where the modules of POSIX are missing, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import omnigraph

POSIX_ONLY = ("fcntl", "grp", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty")
SOURCE = Path(omnigraph.__file__).parent

BLOCKED = """
import importlib.abc, os, signal, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

# What these libraries import for themselves is their own affair.
for name in {others!r}:
    __import__(name)
for name in {blocked!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
for owner, names in ((os, ("fork", "getuid", "geteuid", "killpg", "setsid", "O_CLOEXEC",
                           "O_DIRECTORY", "statvfs", "sysconf", "getloadavg")),
                     (signal, ("SIGKILL", "SIGSTOP", "SIGALRM", "SIGHUP", "SIGUSR1"))):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
"""
OTHERS = (
    "asyncio",
    "lance",
    "mcp.server.mcpserver",
    "multiprocessing.pool",
    "obstore",
    "prometheus_client.multiprocess",
    "pyarrow.compute",
    "subprocess",
    "uvicorn",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.supervisors",
    "uvloop",
)


def run_without_posix(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    block = BLOCKED.format(blocked=POSIX_ONLY, others=OTHERS)
    return subprocess.run(
        [sys.executable, "-c", f"{block}\n{text}", *arguments],
        env={**os.environ, "OMNIGRAPH_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_can_be_imported_without_posix() -> None:
    modules = [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        if "testing" not in path.parts
    ]
    # Imported one after the other in one process: what needs Spark's Java must not start it.
    text = "import importlib\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = run_without_posix(text, *modules)
    assert (done.returncode, done.stderr[-2_000:]) == (0, "")


def test_a_local_directory_that_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    text = (
        "import omnigraph\n"
        "try: omnigraph.init(sys.argv[1], 'node A { name: String @key }')\n"
        "except omnigraph.errors.UnsupportedLocation as error: print(error.code)"
    )
    done = run_without_posix(text, str(tmp_path / "g"))
    assert (done.returncode, done.stdout) == (0, "unsupported_location\n"), done.stderr
