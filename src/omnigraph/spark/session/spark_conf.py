"""The configuration of a Spark session that is started here: the user's, and defaults of ours.

The user's configuration is what Spark itself would read (``spark-defaults.conf``), then
``OMNIGRAPH_SPARK_CONF``, then what a program passes. Nothing of ours stands over it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInput
from omnigraph.settings import SparkSettings
from omnigraph.spark.session.process_environment import executor_environment

MEMORY_SHARE: Final = 4
MEMORY_MB: Final = (1_024, 8_192)
"""Java heap: a quarter of the machine's memory, within these bounds; a load needs little of it."""

JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:GCTimeRatio=9"
"""The fastest collector for these jobs, set to collect before growing the heap: otherwise Java
keeps gigabytes after the first large job and is hardly faster."""

SHUFFLE_PARTITIONS_PER_CORE: Final = 4


def user_conf(settings: SparkSettings) -> dict[str, str]:
    """The user's configuration: the defaults of this installation of Spark, then the setting."""
    return {**_defaults_file(settings), **_listed(settings.conf or "")}


def session_conf(
    user: Mapping[str, str], given: Mapping[str, str], *, is_local: bool, cores: int
) -> dict[str, str]:
    """What a session is started with: the user's configuration, and defaults where it has none."""
    return {**_defaults(is_local, cores), **user, **given}


def _defaults(is_local: bool, cores: int) -> dict[str, str]:
    low, high = MEMORY_MB
    memory_mb = min(max(_memory_mb() // MEMORY_SHARE, low), high)
    found = {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.caseSensitive": "true",  # names of the schema are case-sensitive
        "spark.sql.shuffle.partitions": str(cores * SHUFFLE_PARTITIONS_PER_CORE),
        **{f"spark.executorEnv.{name}": value for name, value in executor_environment().items()},
    }
    if is_local:
        found["spark.ui.enabled"] = "false"  # a session that ends with the command
    return found


def _defaults_file(settings: SparkSettings) -> dict[str, str]:
    """``spark-defaults.conf``: a name and a value per line, separated by white space or ``=``."""
    folder = settings.conf_dir
    if folder is None:
        spec = find_spec("pyspark")
        installed = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""
        folder = os.path.join(settings.home or installed, "conf")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in map(str.strip, lines):
        if line and not line.startswith("#"):
            name, _, value = line.replace("=", " ", 1).partition(" ")
            found[name.strip()] = value.strip()
    return found


def _listed(text: str) -> dict[str, str]:
    """The setting: ``name=value`` entries, separated by semicolons."""
    found = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = entry.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise InvalidInput(
                f"OMNIGRAPH_SPARK_CONF has {entry!r}, which is no Spark setting",
                remedy="Write spark.name=value; spark.other=value.",
            )
        found[name.strip()] = value.strip()
    return found


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
