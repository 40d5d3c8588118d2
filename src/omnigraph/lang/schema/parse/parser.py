"""The recursive descent parser of schema texts.

After a syntax error it continues with the next property, constraint or declaration, so that one run
reports as many errors as possible. No word is reserved: ``node: String`` is an ordinary property.
"""

from __future__ import annotations

from typing import Final

from omnigraph.lang.schema.parse.ast import (
    Annotation,
    Argument,
    Cardinality,
    ConstraintDecl,
    ConstraintKind,
    EdgeDecl,
    InterfaceDecl,
    Name,
    NodeDecl,
    PropertyDecl,
    SchemaFile,
)
from omnigraph.lang.schema.parse.type_syntax import bounded_integer, parse_type
from omnigraph.lang.syntax import (
    Diagnostics,
    Recover,
    Source,
    Span,
    Token,
    TokenStream,
    string_value,
)
from omnigraph.lang.syntax.lexer import DECIMAL, INTEGER, NAME, STRING, TYPE_NAME

DECLARATION_WORDS: Final = ("interface", "node", "edge")
CONSTRAINT_WORDS: Final[dict[str, ConstraintKind]] = {
    "key": "key",
    "unique": "unique",
    "index": "index",
    "range": "range",
    "check": "check",
}
CARDINALITY_MAX: Final = 2**32 - 1

_Body = tuple[tuple[PropertyDecl, ...], tuple[ConstraintDecl, ...]]


def parse(source: Source, diagnostics: Diagnostics) -> SchemaFile:
    """The AST of a text. Syntax errors are reported, and declarations with one are left out."""
    return _SchemaParser(source, diagnostics).schema()


class _SchemaParser:
    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.stream = TokenStream(source, diagnostics)
        self.interfaces: list[InterfaceDecl] = []
        self.nodes: list[NodeDecl] = []
        self.edges: list[EdgeDecl] = []

    def schema(self) -> SchemaFile:
        stream = self.stream
        while not stream.at_end:
            start = stream.index
            try:
                self.declaration()
            except Recover:
                if stream.index == start:
                    stream.advance()
                stream.skip_until(self.at_declaration)
        return SchemaFile(
            self.source,
            tuple(self.interfaces),
            tuple(self.nodes),
            tuple(self.edges),
            complete=self.diagnostics.error_count == 0,
        )

    def declaration(self) -> None:
        """Parse one declaration. If it has an error, all of it is left out of the AST."""
        stream = self.stream
        errors = self.diagnostics.error_count
        kept: list[InterfaceDecl] | list[NodeDecl] | list[EdgeDecl]
        if start := stream.accept_word("interface"):
            self.interfaces.append(self.interface(start))
            kept = self.interfaces
        elif start := stream.accept_word("node"):
            self.nodes.append(self.node(start))
            kept = self.nodes
        elif start := stream.accept_word("edge"):
            self.edges.append(self.edge(start))
            kept = self.edges
        else:
            stream.fail()
        if self.diagnostics.error_count != errors:
            kept.pop()

    def interface(self, start: Token) -> InterfaceDecl:
        stream = self.stream
        name = self.type_name("an interface name")
        annotations = self.annotations(header=True)
        stream.expect("{")
        properties, constraints = self.body(f"interface {name.text}")
        return InterfaceDecl(name, annotations, properties, constraints, stream.span_from(start))

    def node(self, start: Token) -> NodeDecl:
        stream = self.stream
        name = self.type_name("a node type name")
        annotations = self.annotations(header=True)
        implements: list[Name] = []
        if stream.accept_word("implements"):
            implements.append(self.type_name("an interface name"))
            while stream.accept(","):
                implements.append(self.type_name("an interface name"))
            if stream.at("@"):
                stream.try_for("{")
                stream.fail(remedy="Write annotations of a node type before `implements`.")
        stream.expect("{")
        properties, constraints = self.body(f"node {name.text}")
        span = stream.span_from(start)
        return NodeDecl(name, annotations, tuple(implements), properties, constraints, span)

    def edge(self, start: Token) -> EdgeDecl:
        stream = self.stream
        name = self.type_name("an edge type name")
        stream.expect(":")
        source = self.type_name("the node type the edge starts at")
        stream.expect("->")
        target = self.type_name("the node type the edge ends at")
        cardinality = self.cardinality()
        annotations = self.annotations(header=True)
        properties: tuple[PropertyDecl, ...] = ()
        constraints: tuple[ConstraintDecl, ...] = ()
        if stream.accept("{"):
            properties, constraints = self.body(f"edge {name.text}")
        elif not stream.at_end and stream.current.text not in DECLARATION_WORDS:
            stream.try_for(*DECLARATION_WORDS)
            stream.fail()
        span = stream.span_from(start)
        return EdgeDecl(
            name, source, target, cardinality, annotations, properties, constraints, span
        )

    def cardinality(self) -> Cardinality | None:
        stream = self.stream
        if not stream.at("@") or stream.peek().text != "card" or stream.peek(2).kind != "(":
            return None
        start = stream.advance()
        stream.advance()
        stream.expect("(")
        low = bounded_integer(stream, CARDINALITY_MAX, "S25")
        stream.expect("..")
        high = bounded_integer(stream, CARDINALITY_MAX, "S25") if stream.at(INTEGER) else None
        stream.try_for(INTEGER)
        stream.expect(")")
        return Cardinality(low, high, stream.span_from(start))

    def body(self, what: str) -> _Body:
        """Properties and constraints up to the closing brace; the opening one is taken."""
        stream = self.stream
        properties: list[PropertyDecl] = []
        constraints: list[ConstraintDecl] = []
        while not stream.accept("}"):
            start = stream.index
            try:
                if stream.at_end or self.at_declaration():
                    stream.fail(
                        f"the body of {what} is not closed",
                        remedy="Close the body with `}`.",
                    )
                if stream.at(NAME):
                    properties.append(self.property())
                elif stream.at("@"):
                    constraints.append(self.constraint())
                else:
                    self.not_a_member()
            except Recover:
                if stream.at_end or self.at_declaration():
                    raise
                if stream.index == start:
                    stream.advance()
                stream.skip_until(self.at_member)
        return tuple(properties), tuple(constraints)

    def not_a_member(self) -> None:
        stream = self.stream
        hint = None
        if stream.at(TYPE_NAME):
            text = stream.current.text
            hint = f"property names start with a lower-case letter: `{text[0].lower()}{text[1:]}`"
        elif stream.at(","):
            hint = "properties are not separated by commas"
        stream.try_for("a property name", "@")
        stream.fail(hint=hint)

    def property(self) -> PropertyDecl:
        stream = self.stream
        start = stream.advance()
        stream.expect(":")
        type_use = parse_type(stream)
        annotations = self.annotations(header=False)
        return PropertyDecl(_name(start), type_use, annotations, stream.span_from(start))

    def constraint(self) -> ConstraintDecl:
        stream = self.stream
        start = stream.advance()
        word = stream.current
        kind = CONSTRAINT_WORDS.get(word.text)
        if kind is None or stream.peek().kind != "(":
            stream.try_for(*(f"@{known}(…)" for known in CONSTRAINT_WORDS))
            stream.fail(
                f"`@{word.text}` cannot stand here" if word.kind == NAME else None,
                hint=self.diagnostics.did_you_mean(word.text, CONSTRAINT_WORDS),
                remedy="Put an annotation after the type of the property it belongs to.",
            )
        stream.advance()
        stream.expect("(")
        names = [self.property_name()]
        low = high = pattern = None
        if kind == "range":
            stream.expect(",")
            low, high = self.range()
        elif kind == "check":
            stream.expect(",")
            pattern = string_value(stream.expect(STRING))
        else:
            while stream.accept(","):
                names.append(self.property_name())
        stream.expect(")")
        span = stream.span_from(start)
        return ConstraintDecl(kind, tuple(names), span, low, high, pattern)

    def range(self) -> tuple[float | None, float | None]:
        stream = self.stream
        if stream.accept(".."):
            return None, self.number()
        low = self.number()
        stream.expect("..")
        if stream.at(")"):
            return low, None
        return low, self.number()

    def number(self) -> float:
        stream = self.stream
        sign = -1.0 if stream.accept("-") else 1.0
        if not stream.at(INTEGER) and not stream.at(DECIMAL):
            stream.try_for("a number")
            stream.fail()
        token = stream.advance()
        return sign * float(token.text)

    def annotations(self, *, header: bool) -> tuple[Annotation, ...]:
        """A list of annotations; a constraint word followed by ``(`` is not one (S-6)."""
        stream = self.stream
        found: list[Annotation] = []
        while stream.at("@"):
            word = stream.peek()
            if word.text in CONSTRAINT_WORDS and stream.peek(2).kind == "(":
                if not header:
                    break
                stream.fail(
                    f"the constraint `@{word.text}(…)` stands outside the body",
                    code="S6",
                    span=Span(stream.current.start, word.end),
                    remedy="Move it between the braces.",
                )
            found.append(self.annotation())
        stream.try_for("@")
        return tuple(found)

    def annotation(self) -> Annotation:
        stream = self.stream
        start = stream.advance()
        name = _name(stream.expect(NAME, "an annotation name"))
        arguments: list[Argument] = []
        if stream.accept("("):
            self.no_cardinality_here(name, start)
            arguments.append(self.argument(None))
            while stream.accept(","):
                keyword = _name(stream.expect(NAME, "a keyword argument such as `model`"))
                stream.expect("=")
                arguments.append(self.argument(keyword))
            stream.expect(")")
        return Annotation(name, tuple(arguments), stream.span_from(start))

    def no_cardinality_here(self, name: Name, start: Token) -> None:
        if name.text == "card":
            self.stream.fail(
                "`@card` cannot stand here",
                code="S25",
                span=Span(start.start, name.span.end),
                remedy="Write it directly after the target of an edge, before other annotations.",
            )

    def argument(self, keyword: Name | None) -> Argument:
        stream = self.stream
        token = stream.current
        value: str | int | float | bool
        if token.kind == STRING:
            value = string_value(token)
        elif token.kind == INTEGER:
            value = int(token.text)
        elif token.kind == DECIMAL:
            value = float(token.text)
        elif token.kind == NAME and token.text in ("true", "false"):
            value = token.text == "true"
        elif token.kind == NAME and keyword is None:
            value = token.text
        else:
            stream.try_for(STRING, "a number", "true", "false")
            if keyword is None:
                stream.try_for("a name")
            quoted = f'put the name in quotes: `"{token.text}"`'
            stream.fail(hint=quoted if token.kind == TYPE_NAME else None)
        stream.advance()
        return Argument(value, token.span, keyword)

    def type_name(self, what: str) -> Name:
        stream = self.stream
        if stream.at(NAME):
            text = stream.current.text
            upper = text[0].upper() + text[1:]
            stream.try_for(what)
            stream.fail(
                f"`{text}` is not a type name",
                hint=f"did you mean `{upper}`?" if upper != text else None,
                remedy="Names of types start with an upper-case letter.",
            )
        return _name(stream.expect(TYPE_NAME, what))

    def property_name(self) -> Name:
        return _name(self.stream.expect(NAME, "a property name"))

    def at_declaration(self) -> bool:
        """Whether a declaration starts here: its word, and a type name after it."""
        stream = self.stream
        return (
            stream.current.kind == NAME
            and stream.current.text in DECLARATION_WORDS
            and stream.peek().kind == TYPE_NAME
        )

    def at_member(self) -> bool:
        """Whether a member of a body, or its end, starts here."""
        stream = self.stream
        kind = stream.current.kind
        if kind == "}" or self.at_declaration():
            return True
        following = stream.peek()
        if kind in (NAME, TYPE_NAME):
            return following.kind == ":"
        return kind == "@" and following.text in CONSTRAINT_WORDS and stream.peek(2).kind == "("


def _name(token: Token) -> Name:
    return Name(token.text, token.span)
