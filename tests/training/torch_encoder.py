"""A ranker with a small PyTorch transformer, which several tests train."""

from functools import partial
from pathlib import Path

from thinc.api import PyTorchWrapper

from tests.training.examples import RANKER
from thincdialog.api import registry
from thincdialog.layers.with_torch_tokens import with_torch_tokens

CODE = Path(__file__)
TORCH = RANKER.replace(
    """@models = "thincdialog.BagEncoder.v1"
width = 16
dropout = 0.2
""",
    """@models = "thincdialog.TransformerEncoder.v1"
dropout = 0.2

[agent.model.encoder.tokens]
@layers = "tests.torch_tokens.v1"
""",
).replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nL2 = 0.01')


@registry.layers("tests.torch_tokens.v1")
def torch_tokens(width: int = 8, dropout: float = 0.2):
    return with_torch_tokens(partial(make_module, width, dropout), width)


def make_module(width: int, dropout: float, n_ids: int):
    """Make a transformer whose segment embeddings are frozen, with a scale that is a buffer."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(n_ids, width)
            self.segments = torch.nn.Embedding(4, width)
            self.segments.weight.requires_grad = False
            self.register_buffer("scale", torch.rand(width) + 1)
            block = torch.nn.TransformerEncoderLayer(width, 2, 16, dropout, batch_first=True)
            self.blocks = torch.nn.TransformerEncoder(block, 1, enable_nested_tensor=False)

        def forward(self, tokens, mask):
            segments = self.segments(tokens[..., 1].clamp(max=3))
            X = (self.words(tokens[..., 0]) + segments) * self.scale
            return self.blocks(X, src_key_padding_mask=~mask)

    return Encoder()


@registry.layers("tests.torch_net.v1")
def torch_net():
    """Make a module that is built with the config."""
    import torch

    return PyTorchWrapper(torch.nn.Linear(16, 8))
