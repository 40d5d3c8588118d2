"""The one place that names the Lance version these guards were written for."""

import lance

GUARDED = "14.0.2"


def test_the_guards_were_written_for_the_installed_lance() -> None:
    assert lance.__version__ == GUARDED, (
        f"Lance is {lance.__version__}, the guards know {GUARDED}. On an upgrade: run tests/guards "
        "and read every failure as a question about src/omnigraph/storage (each docstring says "
        "what depends on it); check whether a trap in test_traps.py or test_truncated_files.py "
        "was fixed, so that its workaround can go; regenerate the table of storage "
        "calls (python -m tests.storage_calls.regenerate) and compare it; run `make bench`; then "
        "change the pin in pyproject.toml and this constant together."
    )
