"""The query language `.gq`: parser, type checker, logical plan, parameters, lint, formatter.

Pure code: no files, no tables. What is exported here is what other rooms use; engines
also import ``plan`` and ``typed_expressions`` for the values they execute.
"""

from omnigraph.lang.query.check import check_query
from omnigraph.lang.query.checked import CheckedQuery, CheckedRead, CheckedWrite
from omnigraph.lang.query.compile import CompiledQuery, compile_cached, compile_query, select_query
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import LintReport, SchemaOrigin, lint_queries
from omnigraph.lang.query.operation import QueryOperation, describe_operation, describe_parameters
from omnigraph.lang.query.parameters import BoundParameters, bind_parameters, read_parameters
from omnigraph.lang.query.parse.parser import parse_queries
from omnigraph.lang.query.plan.explain import explain, explain_json
from omnigraph.lang.query.plan.logical import Plan, ReadPlan, WritePlan
from omnigraph.lang.query.plan.planner import plan_query
from omnigraph.lang.query.upgrade import upgrade_queries

__all__ = [
    "BoundParameters",
    "CheckedQuery",
    "CheckedRead",
    "CheckedWrite",
    "CompiledQuery",
    "LintReport",
    "Plan",
    "QueryOperation",
    "ReadPlan",
    "SchemaOrigin",
    "WritePlan",
    "bind_parameters",
    "check_query",
    "compile_cached",
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
    "upgrade_queries",
]
