"""The query language `.gq`: parser, type checker, logical plan, parameters, lint, formatter.

Pure code: no files, no tables, no pyarrow. What is exported here is what other rooms use; engines
also import ``plan``, ``expressions`` and ``steps`` for the values they execute.
"""

from typing import TYPE_CHECKING

from omnigraph.lazy import on_first_use
from omnigraph.query.check import check_query
from omnigraph.query.checked import CheckedQuery, CheckedRead, CheckedWrite
from omnigraph.query.compile import CompiledQuery, compile_query, select_query
from omnigraph.query.explain import explain, explain_json
from omnigraph.query.params import BoundParameters, bind_parameters, read_parameters
from omnigraph.query.parser import parse_queries
from omnigraph.query.plan import Plan, ReadPlan, WritePlan
from omnigraph.query.planner import plan_query

if TYPE_CHECKING:
    from omnigraph.query.format import format_queries
    from omnigraph.query.lint import LintReport, SchemaOrigin, lint_queries
    from omnigraph.query.operation import Operation, describe_operation, describe_parameters

__all__ = [
    "BoundParameters",
    "CheckedQuery",
    "CheckedRead",
    "CheckedWrite",
    "CompiledQuery",
    "LintReport",
    "Operation",
    "Plan",
    "ReadPlan",
    "SchemaOrigin",
    "WritePlan",
    "bind_parameters",
    "check_query",
    "compile_query",
    "describe_operation",
    "describe_parameters",
    "explain",
    "explain_json",
    "format_queries",
    "lint_queries",
    "parse_queries",
    "plan_query",
    "read_parameters",
    "select_query",
]

# Running a query needs none of these.
__getattr__ = on_first_use(
    __name__,
    {
        "format_queries": "format",
        **dict.fromkeys(("LintReport", "SchemaOrigin", "lint_queries"), "lint"),
        **dict.fromkeys(("Operation", "describe_operation", "describe_parameters"), "operation"),
    },
)
