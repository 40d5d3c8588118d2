"""Embeddings: texts to vectors, by a provider the environment names.

Providers know nothing of graphs. What comes out is always finite, of the asked width and of unit
length; anything else is a typed error.
"""

from omnigraph.embed.provider import Embedder, EmbeddingTask, Provider
from omnigraph.embed.settings import embedder_from_environment

__all__ = ["Embedder", "EmbeddingTask", "Provider", "embedder_from_environment"]
