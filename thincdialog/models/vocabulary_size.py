"""Tells a model how many token ids there are."""

from thinc.api import Model


def set_vocabulary(model: Model, n_ids: int) -> None:
    """Set the size of every embedding table that has none yet.

    A layer asks for it by having a dimension "nV" without a value.

    model (Model): Before ``initialize``.
    n_ids (int): Number of token ids, the special ones included.
    """
    for node in model.walk():
        if node.has_dim("nV") is None:
            node.set_dim("nV", n_ids)
