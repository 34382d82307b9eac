"""Architectures, one a file, and how their parameters lie in memory."""

from . import (
    bag_encoder,
    bi_encoder,
    bilstm_encoder,
    classifier,
    cnn_encoder,
    committee,
    cross_encoder,
    fast_text,
    linear_classifier,
    memory_reader,
    poly_encoder,
    re_ranker,
    star_space,
    transformer_encoder,
    transformer_tokens,
)
