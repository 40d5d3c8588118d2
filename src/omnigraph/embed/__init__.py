"""Embeddings of texts, computed by the provider that the settings name.

Providers know nothing of graphs. A vector always has the requested dimensions, finite values and
unit length; anything else raises ``EmbeddingFailure``.
"""

from omnigraph.embed.configured import configured_embedder
from omnigraph.embed.provider import Embedder, EmbeddingTask, Provider

__all__ = ["Embedder", "EmbeddingTask", "Provider", "configured_embedder"]
