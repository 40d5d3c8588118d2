"""``python -m tests.storage_calls.regenerate``: measure everything and replace the table."""

from __future__ import annotations

from tests.storage_calls import table
from tests.storage_calls.measure import measure_everything
from tests.support.s3server import s3_server


def main() -> None:
    with s3_server() as server:
        measured = measure_everything(server)
    table.save(measured)
    print(f"{len(measured)} cells written to {table.PATH.name}")


if __name__ == "__main__":
    main()
