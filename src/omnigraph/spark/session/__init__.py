"""The Spark session: active, on a cluster, on the warm server, or local to this process."""

from omnigraph.spark.session.spark_session import session

__all__ = ["session"]
