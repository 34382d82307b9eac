"""A PyTorch module that reads tokens."""

from typing import Any, Callable, Optional, Tuple

import numpy
from thinc.api import Model, PyTorchShim
from thinc.types import Ragged
from thinc.util import partial, torch2xp

from ..errors import importing
from ..ops.devices import host_tokens, no_gradient

InT = Ragged
OutT = Ragged


def with_torch_tokens(
    make_module: Callable[[int], Any], nO: int, nV: Optional[int] = None
) -> Model[InT, OutT]:
    """Wrap a PyTorch module that reads padded tokens and gives one vector for each token.

    The module is called with `tokens`, shape (n_texts, n_longest, 2), int64: id and segment of each
    token; and with `mask`, shape (n_texts, n_longest), bool: True for tokens, False for padding.
    It returns floats of shape (n_texts, n_longest, nO). Texts without tokens are omitted.

    make_module (Callable[[int], torch.nn.Module]): Builds the module, given the number of token
        ids. `initialize` calls it, after the random seed was set.
    nO (int): Width of a vector.
    nV (Optional[int]): Number of token ids; set before initialize (``set_vocabulary``).
    X (Ragged): Token ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, nO).
    RAISES (MissingPackageError): If PyTorch is not installed.
    """
    with importing("torch", "with_torch_tokens"):
        import torch  # noqa: F401
    return Model(
        "with_torch_tokens",
        forward,
        init=partial(init, make_module),
        dims={"nO": nO, "nV": nV},
        attrs={"is_padded": True},
    )


def forward(model: Model[InT, OutT], X: InT, is_train: bool) -> Tuple[OutT, Callable]:
    import torch

    ops: Any = model.ops
    shim: Any = model.shims[0]
    if not len(X.dataXd):  # Few modules accept an empty batch.
        return Ragged(ops.alloc2f(0, model.get_dim("nO")), X.lengths), lambda dYr: X
    ids, lengths = host_tokens(X)
    lengths = lengths[lengths > 0]
    inside = numpy.arange(lengths.max()) < lengths[:, None]  # (n_texts, n_longest)
    mask = torch.as_tensor(inside, device=shim.device)
    tokens = torch.zeros((*mask.shape, 2), dtype=torch.int64, device=shim.device)
    tokens[mask] = torch.as_tensor(ids.astype("int64"), device=shim.device)
    # Do not call the shim: it leaves the module in training mode after each prediction.
    shim._model.train(is_train)
    with torch.set_grad_enabled(is_train):
        Yt = shim._model(tokens, mask)  # (n_texts, n_longest, nO)
    wanted = (*mask.shape, model.get_dim("nO"))
    if Yt.shape != wanted:
        raise ValueError(f"the PyTorch module returned {tuple(Yt.shape)}, expected {wanted}")
    Yt = Yt[mask]  # (n_tokens, nO)

    def backprop(dYr: OutT) -> InT:
        if Yt.requires_grad:
            Yt.backward(torch.as_tensor(dYr.dataXd, device=shim.device))
        return no_gradient(X)

    return Ragged(torch2xp(Yt.detach(), ops=ops), X.lengths), backprop


def init(make_module: Callable, model: Model[InT, OutT], X: Any = None, Y: Any = None) -> None:
    model.shims[:] = [PyTorchShim(make_module(model.get_dim("nV")))]
