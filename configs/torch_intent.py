"""Give this file with --code: the PyTorch layer of configs/torch_intent.cfg."""

from functools import partial

import torch
from thinc.api import Model, registry
from thinc.types import Ragged

from thincdialog.layers.with_torch_tokens import with_torch_tokens


class Encoder(torch.nn.Module):
    """A transformer encoder, pre-LayerNorm, with learned positions.

    width (int): Width of a vector, a multiple of 4.
    depth (int): Number of blocks.
    dropout (float): Probability of zeroing a cell.
    max_length (int): Tokens from this place on share a position.
    n_ids (int): Number of token ids.
    """

    def __init__(self, width: int, depth: int, dropout: float, max_length: int, n_ids: int):
        super().__init__()
        self.words = torch.nn.Embedding(n_ids, width)
        self.positions = torch.nn.Embedding(max_length, width)
        self.dropout = torch.nn.Dropout(dropout)
        block = torch.nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = torch.nn.TransformerEncoder(block, depth, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        places = places.clamp(max=self.positions.num_embeddings - 1)
        X = self.dropout(self.words(tokens[..., 0]) + self.positions(places))
        return self.blocks(X, src_key_padding_mask=~mask)


@registry.layers("torch_transformer.v1")
def torch_transformer(
    width: int, depth: int = 2, dropout: float = 0.1, max_length: int = 128
) -> Model[Ragged, Ragged]:
    """One vector for each token, from a transformer of PyTorch. Arguments as of ``Encoder``."""
    return with_torch_tokens(partial(Encoder, width, depth, dropout, max_length), width)
