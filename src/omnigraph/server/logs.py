"""Logs as JSON, one object per line, on standard error."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_FIELDS: Final = "omnigraph_fields"
_access = logging.getLogger("omnigraph.server.access")
_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and what was added to it."""

    def format(self, record: logging.LogRecord) -> str:
        body: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        body |= getattr(record, _FIELDS, {})
        if record.exc_info:
            body["exception"] = self.formatException(record.exc_info)
        return _encode(body).decode()


def configure_logs(level: str) -> None:
    """Send the logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("omnigraph").setLevel(level.upper())
    # An answer that breaks off is logged with its reason; uvicorn would add a traceback.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn.access").handlers = []


def access_log(
    request_id: str, method: str, route: str, status: int, seconds: float, **known: str | None
) -> None:
    """One line per request. URLs are not logged: they can hold ids and values."""
    if not _access.isEnabledFor(logging.INFO):
        return
    fields: dict[str, Any] = {
        "request_id": request_id,
        "method": method,
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 3),
    }
    fields |= {name: value for name, value in known.items() if value is not None}
    _access.info("request", extra={_FIELDS: fields})


def log_with(logger: logging.Logger, level: int, message: str, fields: dict[str, Any]) -> None:
    """One line with facts beside its message."""
    logger.log(level, message, extra={_FIELDS: fields})
