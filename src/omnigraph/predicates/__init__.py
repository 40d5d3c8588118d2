"""Conditions on columns: one evaluator for queries, mutations and checks.

``values`` holds columns in the form that is computed with, ``compare`` says which rows satisfy
``left operator right``, ``condition`` puts both to use on stored rows, and ``lookup`` words a
condition as a filter of the table. No other room decides whether a value satisfies a condition, and
nothing here reads a table.
"""
