"""The commands of the guide work as written: the server starts, is asked, and is stopped."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "serving.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:8080"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide asks with curl")
def test_the_guide_leads_to_a_server_with_authentication(tmp_path: Path) -> None:
    blocks = _BLOCK.findall(GUIDE.read_text())
    (schema,) = [text for kind, text in blocks if kind == "pg"]
    (tmp_path / "people.pg").write_text(schema)
    (commands,) = [text for kind, text in blocks if kind == ""]
    install, start, ask = [text for kind, text in blocks if kind == "sh"]
    assert install.startswith("pip install")
    program = tmp_path / "bin" / "omnigraph"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m omnigraph.cli.main "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}

    shell(commands, tmp_path, environment)
    script = start.replace("omnigraph serve", "exec omnigraph serve").replace(
        ADDRESS, "127.0.0.1:0"
    )
    with (tmp_path / "out").open("wb") as out:
        server = subprocess.Popen(["sh", "-c", script], cwd=tmp_path, env=environment, stdout=out)
    try:
        address = listening(tmp_path / "out", server)
        # An alias is for people; in a script it needs the option that turns it on.
        asked = ask.replace(ADDRESS, address)
        said = shell(f"shopt -s expand_aliases\n{asked}", tmp_path, environment, "bash")
        assert '"graph_id":"people"' in said
        assert '"p.name":"ana"' in said
        assert '"affected_nodes":1' in said
        assert '"actor_id":"ana"' in said
        assert '"status":"ok"' in said
        assert httpx.get(f"http://{address}/graphs").status_code == 401
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def shell(text: str, where: Path, environment: dict[str, str], program: str = "sh") -> str:
    done = subprocess.run(
        [program, "-ec", text], cwd=where, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def listening(out: Path, server: subprocess.Popen[bytes]) -> str:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and server.poll() is None:
        text = out.read_text()
        if text.endswith("\n"):
            return text.strip().partition("=")[2]
        time.sleep(0.02)
    raise AssertionError("the server did not start")
