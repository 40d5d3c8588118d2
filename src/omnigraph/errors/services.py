"""Spark or an embedding provider failed."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class EmbeddingFailure(OmnigraphError):
    """The embedding provider is not configured, failed, or did not respond."""

    code = "embedding_failure"
    status = 502
    default_remedy = (
        "Check the settings of the embedding provider, or pass a vector instead of text."
    )


class SparkFailure(OmnigraphError):
    """A Spark job failed for a reason other than its data. It changed nothing visible."""

    code = "spark_failure"
    default_remedy = "Nothing was written. Fix the cause and try again."


class SparkUnavailable(SparkFailure):
    code = "spark_unavailable"
    status = 503
    default_remedy = "Install the Spark extra and Java 17+, or load with `--engine local`."


class SparkStalled(SparkFailure):
    code = "spark_stalled"
    status = 503
    retryable = True
    default_remedy = "Check that the cluster has live workers with free cores, then try again."
