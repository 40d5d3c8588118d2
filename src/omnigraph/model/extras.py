"""Optional parts of the installation, and what to say when one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import NotAvailable

_EXTRA_OF_MODULE: Final = {"cedarpy": "policy", "yaml": "policy"}


@contextmanager
def extra_required() -> Iterator[None]:
    """Name the extra to install when an import in the block fails for lack of it."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF_MODULE.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise NotAvailable(
            f"the package {error.name} is not installed",
            remedy=f"Install it with `pip install 'omnigraph[{extra}]'`.",
        ) from None
