"""Bulk work as tasks: a load, an export or an assignment is divided, and a runner runs the parts.

The code of the tasks is the same on every runner (``Tasks``): threads of this process, or a Spark
session. Nothing here needs PySpark, and nothing here publishes a table version: the work ends in a
write for the write transaction.
"""
