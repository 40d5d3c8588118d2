"""What tests of the schema language share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from omnigraph.lang.schema import AcceptedSchema, SchemaPlan, accept_schema, plan_schema
from omnigraph.lang.syntax import Diagnostic, SourceError

MUS = """
node Curator {
  handle: String @key
  age: I32?
  email: String? @unique
  level: enum(junior, senior)?
  tags: [String]?
}
node Hall {
  code: String @key
  capacity: U32?
  @range(capacity, 1..500)
}
edge Mentors: Curator -> Curator { since: Date? }
edge Guards: Curator -> Hall @card(0..2)
"""


def minter(prefix: str = "ID") -> Callable[[], str]:
    """Identities in order: ID000000, ID000001, …"""
    numbers = count()
    return lambda: f"{prefix}{next(numbers):06d}"


def accept(text: str, previous: AcceptedSchema | None = None) -> AcceptedSchema:
    prefix = "ID" if previous is None else f"{previous.hash[7:13]}-"
    return accept_schema(text, previous=previous, mint=minter(prefix))


def findings(text: str, previous: AcceptedSchema | None = None) -> tuple[Diagnostic, ...]:
    """The errors of a text that must not be accepted."""
    try:
        accept(text, previous)
    except SourceError as error:
        return error.diagnostics
    raise AssertionError(f"this schema should have been refused:\n{text}")


def codes(text: str, previous: AcceptedSchema | None = None) -> list[str]:
    return [item.code for item in findings(text, previous) if item.severity == "error"]


def plan(before: str, after: str, *, allow_data_loss: bool = False) -> SchemaPlan:
    accepted = accept(before)
    return plan_schema(accepted, accept(after, accepted), allow_data_loss=allow_data_loss)


def step_kinds(before: str, after: str) -> list[str]:
    return [step.kind for step in plan(before, after).steps]
