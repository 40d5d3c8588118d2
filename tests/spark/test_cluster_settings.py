"""Configuration of sessions, the package for executors, and texts about what is missing."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from omnigraph.errors import InvalidInput, SparkUnavailable
from omnigraph.settings import Settings
from omnigraph.spark.session.executor_probe import probe
from omnigraph.spark.session.package import build_package
from omnigraph.spark.session.preflight import require_packages
from omnigraph.spark.session.spark_conf import session_conf, user_conf
from omnigraph.spark.session.spark_session import cause_of_failure


def _user(tmp_path: Path, conf: str = "") -> dict[str, str]:
    (tmp_path / "spark-defaults.conf").write_text(
        "# theirs\nspark.ui.enabled true\nspark.driver.memory=2g\nspark.executor.cores   3\n"
    )
    environment = {"SPARK_CONF_DIR": str(tmp_path), "OMNIGRAPH_SPARK_CONF": conf}
    return user_conf(Settings.from_environment(environment).spark)


def test_what_the_user_configures_stands_over_what_omnigraph_sets(tmp_path: Path) -> None:
    user = _user(tmp_path, "spark.driver.memory=3g; spark.eventLog.enabled=true")
    found = session_conf(user, {"spark.executor.cores": "5"}, is_local=True, cores=2)
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.driver.memory"] == "3g"
    assert found["spark.executor.cores"] == "5"
    assert found["spark.eventLog.enabled"] == "true"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_only_a_session_of_this_machine_has_no_ui() -> None:
    assert session_conf({}, {}, is_local=True, cores=2)["spark.ui.enabled"] == "false"
    assert "spark.ui.enabled" not in session_conf({}, {}, is_local=False, cores=2)


def test_a_setting_that_is_no_spark_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="which is no Spark setting"):
        _user(tmp_path, "executor.cores=2")


def test_the_package_can_be_imported_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    build_package(first)
    build_package(second)
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert "omnigraph/spark/tasks.py" in names
    assert not any("__pycache__" in name for name in names)
    code = "import omnigraph.bulk.load.stage as stage; print(stage.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(first)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(first))
    with pytest.raises(InvalidInput, match="is no name of a package"):
        build_package(tmp_path / "package.tar")


@pytest.mark.parametrize(
    ("missing", "changed", "said", "remedy"),
    [
        ({"omnigraph"}, {}, "do not have the package omnigraph", "omnigraph spark package"),
        ({"omnigraph", "pylance"}, {}, "do not have omnigraph, pylance", "PYSPARK_PYTHON"),
        (set(), {"pylance": "1.0"}, "have pylance 1.0, the driver has", "Install pylance=="),
    ],
)
def test_executors_that_cannot_work_are_named_with_the_remedy(
    missing: set[str], changed: dict[str, str], said: str, remedy: str
) -> None:
    found = {name: value for name, value in probe(0).items() if name not in missing}
    require_packages([probe(0)])
    with pytest.raises(SparkUnavailable) as caught:
        require_packages([{**found, **changed, "host": "node7"}])
    assert "the executors on node7" in caught.value.message
    assert said in caught.value.message
    assert remedy in str(caught.value.remedy)


def test_the_cause_of_a_failed_start_is_found_in_the_log() -> None:
    log = [
        "ERROR SparkContext: Ignoring error in stop",
        "Exception in thread main java.lang.NullPointerException",
        "ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.",
    ]
    assert cause_of_failure(log) == log[2]
    assert cause_of_failure(log[:2]) == log[1]
    assert cause_of_failure(log[:1]) is None
