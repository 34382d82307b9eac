"""Set the number of token ids in a model."""

from typing import Mapping

from thinc.api import Model

from ..errors import ConfigError, Problem

_NO_VIEWS: Mapping[str, range] = {}


def set_vocabulary(model: Model, n_ids: int, views: Mapping[str, range] = _NO_VIEWS) -> None:
    """Set the size of every embedding table that has none yet, and the ids of every view.

    A layer asks for the size with a dimension "nV" that has no value, and for the ids of views
    with their names in its attribute "views".

    model (Model): A model before ``initialize``.
    n_ids (int): Number of token ids, special tokens included.
    views (Mapping[str, range]): Ids of each view of the tokenizer, by name.
    RAISES (ConfigError): If the tokenizer lacks a view that the model reads.
    """
    for node in model.walk():
        for name, layer in zip(node.attrs.get("views", ()), node.layers):
            if name not in views:
                text = f"[agent.model] reads the view '{name}', which [tokenizer] does not have"
                known = f"it has: {', '.join(views)}"
                hint = known if views else 'set @tokenizers = "thincdialog.Views.v1"'
                raise ConfigError([Problem("", text, hint)])
            node.attrs["views"][name] = views[name]
            set_vocabulary(layer, len(views[name]))
        if node.has_dim("nV") is None:
            node.set_dim("nV", n_ids)
