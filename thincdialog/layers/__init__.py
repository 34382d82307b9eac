"""Layers of our own, one a file; Thinc's own stand beside them in the registry."""

from . import bag_embed, drop_tokens, feed_forward, l2_normalise, line_embed, memory_hops, scale

__all__ = [
    "bag_embed",
    "drop_tokens",
    "feed_forward",
    "l2_normalise",
    "line_embed",
    "memory_hops",
    "scale",
]
