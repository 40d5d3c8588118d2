"""Spark or an embedding provider failed."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class EmbeddingFailure(OmnigraphError):
    """The provider of embeddings is missing, wrong, or did not answer."""

    code = "embedding_failure"
    status = 502
    default_remedy = "Check the embedding provider's settings, or pass a vector instead of a text."


class SparkFailure(OmnigraphError):
    """A job on Spark failed for a reason that is not the data's. Nothing of it is visible."""

    code = "spark_failure"
    default_remedy = "Look at the reason, and try again; nothing was written."


class SparkUnavailable(SparkFailure):
    code = "spark_unavailable"
    status = 503
    default_remedy = "Install the Spark extra and Java 17+, or load with `--engine local`."


class SparkStalled(SparkFailure):
    code = "spark_stalled"
    status = 503
    retryable = True
    default_remedy = "Check that the cluster has live workers with free cores, then try again."
