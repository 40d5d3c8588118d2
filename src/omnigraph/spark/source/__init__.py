"""The graph as a Spark data source: ``spark.read.format("omnigraph")``."""

from omnigraph.spark.source.data_source import register

__all__ = ["register"]
