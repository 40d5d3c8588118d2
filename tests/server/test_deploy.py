"""The files of ``deploy/``, as far as they can be checked without containers."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from omnigraph.settings import described

DEPLOY = Path(__file__).parents[2] / "deploy"
KNOWN = {name for _, variable in described() for name in variable.names}
OWN = {"OMNIGRAPH_GRAPHS", "OMNIGRAPH_TOKEN"}
"""Variables of the container's entry point and of the compose file."""


def test_every_variable_is_a_setting() -> None:
    for path in DEPLOY.iterdir():
        named = set(re.findall(r"\b(?:OMNIGRAPH|AWS)_[A-Z0-9_]+", path.read_text()))
        assert named <= KNOWN | OWN, path.name


def test_the_container_is_not_root_and_has_a_health_check() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    assert "HEALTHCHECK" in text
    assert text.index("COPY dist/*.whl") < text.index("USER")


def test_the_entry_point_says_what_is_missing() -> None:
    done = subprocess.run(
        ["sh", str(DEPLOY / "entrypoint.sh")],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (64, "")
    assert "OMNIGRAPH_GRAPHS" in done.stderr


def test_the_entry_point_serves_every_graph(tmp_path: Path) -> None:
    program = tmp_path / "omnigraph"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", str(DEPLOY / "entrypoint.sh"), "--read-only"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "OMNIGRAPH_GRAPHS": "a b=s3://x/b"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["serve", "a", "b=s3://x/b", "--read-only"]


def test_kubernetes_probes_are_routes_and_the_pod_is_confined() -> None:
    deployment, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    mounted = {item["name"] for item in container["volumeMounts"]}
    assert mounted == {item["name"] for item in pod["volumes"]}


def test_the_compose_file_builds_the_container_file() -> None:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    build = found["services"]["server"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    assert found["services"]["server"]["read_only"] is True


def test_the_unit_starts_the_server_and_waits_for_it_to_stop() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "omnigraph.service")
    service = unit["Service"]
    assert service["ExecStart"].endswith("omnigraph serve $OMNIGRAPH_GRAPHS")
    assert int(service["TimeoutStopSec"]) > 25
    assert service["NoNewPrivileges"] == "yes"
