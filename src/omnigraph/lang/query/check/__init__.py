"""The type checker: a parsed query and a schema in, a checked query or findings out.

Owns the order in which rules are checked: parameters, match clauses from top to bottom, return
items, order items, limits, aggregates; in a mutation, the statements one after the other. Findings
come out in that order, so the first one is the one the language demands.
"""

from __future__ import annotations

from omnigraph.lang.query.check.context import Context
from omnigraph.lang.query.check.match import check_block
from omnigraph.lang.query.check.mutation import check_statements
from omnigraph.lang.query.check.output import check_output
from omnigraph.lang.query.check.parameters import check_parameters
from omnigraph.lang.query.checked import CheckedQuery, CheckedRead, CheckedWrite
from omnigraph.lang.query.parse import ast
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.lang.syntax.diagnostics import Diagnostics, SourceError
from omnigraph.lang.syntax.source import Source


def check_query(query: ast.Query, schema: AcceptedSchema, source: Source) -> CheckedQuery:
    """The checked query; raises ``SourceError`` with everything that is wrong with it."""
    diagnostics = Diagnostics(source)
    checked = try_check(query, schema, diagnostics)
    if checked is None:
        raise SourceError(source, diagnostics.found, diagnostics.omitted)
    return checked


def try_check(
    query: ast.Query, schema: AcceptedSchema, diagnostics: Diagnostics
) -> CheckedQuery | None:
    """The checked query, or None when ``diagnostics`` has received at least one error."""
    errors_before = diagnostics.error_count
    context = Context(schema, diagnostics)
    parameters = check_parameters(context, query)
    if isinstance(query.body, ast.WriteBody):
        statements = check_statements(context, query)
        if diagnostics.error_count != errors_before:
            return None
        return CheckedWrite(query, parameters, statements)
    block, scope = check_block(context, query.body.match, None)
    output = check_output(context, scope, query.body)
    if output is None or diagnostics.error_count != errors_before:
        return None
    return CheckedRead(
        syntax=query,
        parameters=parameters,
        block=block,
        columns=output.columns,
        is_grouped=output.is_grouped,
        ranking=output.ranking,
        order=output.order,
        limit=output.limit,
        offset=output.offset,
    )
