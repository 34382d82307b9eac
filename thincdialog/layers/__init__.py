"""Layers of our own, one a file; Thinc's own stand beside them in the registry."""

from . import (
    bag_embed,
    bilstm,
    dropout,
    feed_forward,
    fill_empty,
    flatten,
    identity_init,
    l2_normalise,
    layer_norm,
    line_embed,
    memory_hops,
    parts,
    pool,
    projection,
    scale,
    token_embed,
    watched,
    window_block,
    word_vectors,
)
