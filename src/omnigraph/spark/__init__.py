"""The data pipeline on Spark: executors parse, check and stage; the driver commits once.

PySpark is an optional dependency and is imported by the functions that need it. Nothing here moves
a table or publishes: a Spark job is one more preparer for the write transaction.
"""
