"""Arguments that several tools take, with what a model is told about them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

GraphArgument = Annotated[
    str | None, Field(description="Which graph; needed only where several are served.")
]
BranchArgument = Annotated[str, Field(description="The branch.")]
StateArgument = Annotated[
    str | None,
    Field(description="Read an older state instead of a branch: a commit, a tag or a time."),
]
ParamsArgument = Annotated[
    dict[str, Any] | None,
    Field(description="Values of the query's parameters, by name without `$`."),
]
QueryNameArgument = Annotated[
    str | None, Field(description="Which query of the text, where it holds several.")
]
LimitArgument = Annotated[int | None, Field(ge=1, description="At most so many.")]
PageArgument = Annotated[str | None, Field(description="The `next_page_token` of the page before.")]
MessageArgument = Annotated[
    str | None, Field(description="Why: kept with the commit, for people who review it.")
]
ExpectedHeadArgument = Annotated[
    str | None,
    Field(description="Write only if this commit is still the head of the branch."),
]
IdempotencyArgument = Annotated[
    str | None,
    Field(description="Repeating the call with the same key writes nothing a second time."),
]
TypeArgument = Annotated[
    str, Field(description="A type, such as `Person`, or as a key: `node:Person`, `edge:Knows`.")
]
KindsArgument = Annotated[
    list[Literal["node", "edge"]] | None, Field(description="Only nodes, or only edges.")
]
TypesArgument = Annotated[
    list[str] | None, Field(description="Only entities of these types, by name.")
]
OpsArgument = Annotated[
    list[Literal["insert", "update", "delete"]] | None, Field(description="Only these changes.")
]
