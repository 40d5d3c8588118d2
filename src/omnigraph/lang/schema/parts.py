"""The parts of types: properties, annotations, ranges, checks, cardinalities.

Values only, each with the JSON form in which an accepted schema stores it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

from omnigraph.lang.schema.change.computed import ComputedExpression
from omnigraph.lang.schema.parse.ast import Value
from omnigraph.model.floats import shortest_float
from omnigraph.model.types import PropertyType

Json = dict[str, Any]
Columns = tuple[str, ...]


class Origin(NamedTuple):
    """When and under which name a declaration first appeared: a sort key that never changes."""

    generation: str
    """The first id that the change which added it has minted."""
    name: str


NO_ORIGIN: Final = Origin("", "")


@dataclass(frozen=True, slots=True)
class CustomAnnotation:
    """An annotation without meaning to Omnigraph; kept unchanged."""

    name: str
    value: Value | None = None
    keywords: tuple[tuple[str, Value], ...] = ()

    def to_json(self) -> Json:
        body: Json = {"name": self.name}
        if self.value is not None:
            body["value"] = self.value
        if self.keywords:
            body["keywords"] = [list(pair) for pair in self.keywords]
        return body

    @classmethod
    def from_json(cls, body: Json) -> CustomAnnotation:
        keywords = tuple((name, value) for name, value in body.get("keywords", ()))
        return cls(body["name"], body.get("value"), keywords)


Metric = Literal["l2", "cosine", "dot"]
METRICS: Final[tuple[Metric, ...]] = ("l2", "cosine", "dot")
PARTITIONS_MAX: Final = 65_536
"""The largest number of partitions of a vector index: with more, each has too few vectors."""


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """The distance metric of a vector property, and the number of partitions of its index."""

    metric: Metric = "l2"
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class Embed:
    """The source property and the model of an embedding."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a numeric property; values compare with them as in a query."""

    property: str
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """The bounds as the schema language writes them."""
        low = "" if self.low is None else shortest_float(self.low)
        return f"{low}..{'' if self.high is None else shortest_float(self.high)}"

    def to_json(self) -> Json:
        return {
            "property": self.property,
            "low": None if self.low is None else shortest_float(self.low),
            "high": None if self.high is None else shortest_float(self.high),
        }

    @classmethod
    def from_json(cls, body: Json) -> Range:
        low, high = body["low"], body["high"]
        return cls(
            body["property"],
            None if low is None else float(low),
            None if high is None else float(high),
        )


@dataclass(frozen=True, slots=True)
class Check:
    """A pattern that must be found somewhere in a string property."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class EdgeCardinality:
    """How many edges of a type may leave one source node; ``high`` None means any number."""

    low: int = 0
    high: int | None = None

    def __str__(self) -> str:
        return f"{self.low}..{'' if self.high is None else self.high}"


ANY_NUMBER: Final = EdgeCardinality()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a type's table, in table order."""

    name: str
    type: PropertyType
    property_id: str | None
    """None for the system columns: ``id``, and ``src`` and ``dst`` of an edge."""

    @property
    def is_system(self) -> bool:
        return self.property_id is None


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    type: PropertyType
    description: str | None = None
    embed: Embed | None = None
    annotations: tuple[CustomAnnotation, ...] = ()
    inherited: bool = False
    """Copied from an interface rather than declared by the type itself."""
    property_id: str = ""
    origin: Origin = NO_ORIGIN
    default: Value | None = None
    """The default value, as the schema writes it."""
    vector: VectorOptions = VectorOptions()
    fill: Any = None
    """The value of entities that are older than the property; not part of the shape."""
    computed: ComputedExpression | None = None
    """The expression that gives such entities a value instead."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Renamed members of its enum: old and new names."""

    @property
    def default_stored(self) -> Any:
        """The default in its stored form; None when there is none."""
        return None if self.default is None else self.type.accept(self.default)

    def shape(self) -> Json:
        body: Json = {"name": self.name, "type": self.type.to_json()}
        if self.description is not None:
            body["description"] = self.description
        if self.embed is not None:
            body["embed"] = {"source": self.embed.source, "model": self.embed.model}
        if self.default is not None:
            body["default"] = self.default
        if self.vector != VectorOptions():
            body["vector"] = asdict(self.vector)
        if self.annotations:
            body["annotations"] = [item.to_json() for item in self.annotations]
        if self.inherited:
            body["inherited"] = True
        return body

    def to_json(self) -> Json:
        body = {**self.shape(), "property_id": self.property_id, "origin": list(self.origin)}
        if self.fill is not None:
            body["fill"] = self.fill
        if self.computed is not None:
            body["computed"] = self.computed.to_json()
        if self.renamed:
            body["renamed"] = [list(pair) for pair in self.renamed]
        return body

    @classmethod
    def from_json(cls, body: Json) -> Property:
        embed = body.get("embed")
        return cls(
            name=body["name"],
            type=PropertyType.from_json(body["type"]),
            description=body.get("description"),
            embed=Embed(embed["source"], embed["model"]) if embed else None,
            annotations=read_annotations(body),
            inherited=body.get("inherited", False),
            property_id=body["property_id"],
            origin=Origin(*body["origin"]),
            default=body.get("default"),
            vector=VectorOptions(**body.get("vector", {})),
            fill=body.get("fill"),
            computed=ComputedExpression.from_json(body["computed"]) if "computed" in body else None,
            renamed=tuple((old, new) for old, new in body.get("renamed", ())),
        )


def read_annotations(body: Json) -> tuple[CustomAnnotation, ...]:
    return tuple(CustomAnnotation.from_json(item) for item in body.get("annotations", ()))
