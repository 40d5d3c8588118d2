"""The evaluator of conditions on columns, for queries, mutations and checks.

``values`` has the in-memory form of columns, ``compare`` evaluates ``left operator right``,
``condition`` applies both to stored rows, and ``table_filter`` translates a condition into a filter
for the table. No other room decides whether a value satisfies a condition; nothing here reads a
table.
"""
