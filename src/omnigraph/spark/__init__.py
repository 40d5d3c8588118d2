"""Bulk work on Spark: executors parse, check and stage; the driver commits once.

PySpark is an optional dependency and is imported by the functions that need it. Nothing here
publishes a table version: a Spark job prepares a write for the write transaction.
"""
