"""The Spark session: the caller's own, a cluster's, the warm server's, or one for this machine."""

from omnigraph.spark.session.spark_session import session

__all__ = ["session"]
