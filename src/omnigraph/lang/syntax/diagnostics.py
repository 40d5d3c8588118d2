"""Diagnostics: findings of parsers and checkers, as values and rendered for people.

Owns the diagnostic value, the bounded collector that a parser or checker fills, and the error that
carries all of them to the caller. Knows nothing of either language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.errors import LanguageError
from omnigraph.lang.syntax.source import Source, Span
from omnigraph.lang.syntax.suggest import did_you_mean

Severity = Literal["error", "warning", "info"]

DIAGNOSTICS_MAX: Final = 100
"""The limit of findings per text."""

EXPECTED_SHOWN_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. ``hint`` guesses what the author meant, ``remedy`` says what to do."""

    code: str
    message: str
    span: Span | None = None
    severity: Severity = "error"
    expected: tuple[str, ...] = ()
    hint: str | None = None
    remedy: str | None = None

    def to_json(self, source: Source) -> dict[str, Any]:
        """The finding as data: ``span`` in bytes, lines and columns counted from 1."""
        body: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": source.name,
        }
        if self.span is not None:
            start, end = source.position(self.span.start), source.position(self.span.end)
            bytes_start, bytes_end = source.byte_span(self.span)
            body |= {
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "span": {"start": bytes_start, "end": bytes_end},
                "source_line": source.excerpt(self.span)[0],
            }
        if self.expected:
            body["expected"] = list(self.expected)
        if self.hint:
            body["hint"] = self.hint
        if self.remedy:
            body["remedy"] = self.remedy
        return body

    def headline(self, source: Source) -> str:
        """``file:line:column: severity[code]: message`` on one line."""
        where = source.name
        if self.span is not None:
            line, column = source.position(self.span.start)
            where = f"{where}:{line}:{column}"
        return f"{where}: {self.severity}[{self.code}]: {self.message}"

    def render(self, source: Source) -> str:
        """The finding for people: headline, source line with a caret, and what to do."""
        lines = [self.headline(source)]
        margin = "  "
        if self.span is not None:
            number = str(source.position(self.span.start).line)
            shown, carets = source.excerpt(self.span)
            margin = " " * (len(number) + 1)
            lines.append(f"{number} | {shown}")
            lines.append(f"{margin}| {carets}")
        if self.expected:
            lines.append(f"{margin}= expected {any_of(self.expected)}")
        if self.hint:
            lines.append(f"{margin}= {self.hint}")
        if self.remedy:
            lines.append(f"{margin}= help: {self.remedy}")
        return "\n".join(lines)


def any_of(choices: Sequence[str]) -> str:
    """The choices as ``a``, ``a or b`` or ``a, b or c``; a long list is shortened."""
    shown = list(choices[:EXPECTED_SHOWN_MAX])
    if len(choices) > EXPECTED_SHOWN_MAX:
        shown.append("something else")
    if len(shown) == 1:
        return shown[0]
    return ", ".join(shown[:-1]) + " or " + shown[-1]


class SourceError(LanguageError):
    """A text that does not compile. ``diagnostics`` holds every finding, the first one first.

    A parser reports in text order, a checker in the order of its language's rules.
    """

    def __init__(self, source: Source, diagnostics: Sequence[Diagnostic], omitted: int = 0) -> None:
        errors = [item for item in diagnostics if item.severity == "error"]
        first = errors[0] if errors else diagnostics[0]
        message = first.headline(source)
        more = len(errors) - 1 + omitted
        if more > 0:
            message += f" (and {more} more)"
        details: dict[str, Any] = {"diagnostics": [item.to_json(source) for item in diagnostics]}
        if omitted:
            details["omitted"] = omitted
        super().__init__(message, remedy=first.remedy, details=details)
        self.source = source
        self.diagnostics = tuple(diagnostics)
        self.omitted = omitted

    def facts(self) -> dict[str, Any]:
        """The first error in the form in which clients point at it."""
        found = self.details.get("diagnostics", ())
        first = next((item for item in found if item["severity"] == "error"), None)
        if first is None:
            return {}
        body: dict[str, Any] = {"code": first["code"]}
        if "span" in first:
            place = {"line": first["line"], "column": first["column"]}
            body["position"] = place | {"byte": first["span"]["start"]}
        body["expected"] = first.get("expected", [])
        fix = first.get("hint") or first.get("remedy")
        return {"diagnostic": body | ({} if fix is None else {"fix": fix})}

    def __str__(self) -> str:
        return self.render() if hasattr(self, "source") else self.message

    def render(self) -> str:
        """All findings as text, ready for a terminal."""
        return render_all(self.source, self.diagnostics, self.omitted)


def render_all(source: Source, diagnostics: Iterable[Diagnostic], omitted: int = 0) -> str:
    """Several findings as text, one empty line between them."""
    parts = [item.render(source) for item in diagnostics]
    if omitted:
        parts.append(f"{source.name}: {omitted} further findings are not shown")
    return "\n\n".join(parts)


class Diagnostics:
    """Collects the findings of one text, at most ``DIAGNOSTICS_MAX`` of them."""

    __slots__ = ("_items", "error_count", "omitted", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.error_count = 0
        self.omitted = 0
        self._items: list[Diagnostic] = []

    def add(self, item: Diagnostic) -> None:
        if item.severity == "error":
            self.error_count += 1
        if len(self._items) >= DIAGNOSTICS_MAX:
            self.omitted += 1
        else:
            self._items.append(item)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.add(Diagnostic(code, message, span, "error", expected, hint, remedy))

    def warning(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        hint: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.add(Diagnostic(code, message, span, "warning", (), hint, remedy))

    def did_you_mean(self, name: str, candidates: Iterable[str]) -> str | None:
        """A spelling hint for the next finding; None when the limit of findings is reached."""
        full = len(self._items) >= DIAGNOSTICS_MAX
        return None if full else did_you_mean(name, candidates)

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """The findings in the order in which they were added, which is the order of the rules."""
        return tuple(self._items)

    @property
    def items(self) -> tuple[Diagnostic, ...]:
        """The findings in text order; those without a position come first."""
        return tuple(sorted(self._items, key=lambda item: item.span or Span(-1, -1)))

    def raise_errors(self) -> None:
        """Raise ``SourceError`` with all findings if at least one of them is an error."""
        if self.error_count:
            raise SourceError(self.source, self.items, self.omitted)
