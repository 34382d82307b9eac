"""Parameters of PyTorch modules, which layers of Thinc's wrap in a shim."""

import copy
from typing import Any, Dict

from thinc.api import Model, PyTorchShim

from ..errors import ModelError
from ..ops.dialog_ops import stream_seed


def tensors_of(node: Model) -> Dict[str, Any]:
    """Parameters and buffers of a layer's module by name; none if the layer wraps none.

    RAISES (ModelError): If the layer wraps something else, or a module that cannot be trained in
        float32 by several workers.
    """
    if not node.shims:
        return {}
    shim: Any = node.shims[0]
    if len(node.shims) > 1 or not isinstance(shim, PyTorchShim) or shim._mixed_precision:
        raise ModelError(
            f"layer '{node.name}' wraps a model of another library; only one PyTorch module in "
            "float32 (without mixed_precision) can be trained together with Thinc's layers."
        )
    import torch

    for name, module in shim._model.named_modules():
        if getattr(module, "running_mean", None) is not None:
            raise ModelError(
                f"module '{name}' of layer '{node.name}' is a {type(module).__name__}, whose "
                "running averages several workers cannot share. Use LayerNorm or GroupNorm."
            )
    found = {}
    for name, tensor in shim._model.state_dict(keep_vars=True).items():
        if tensor.dtype == torch.float32:
            # Masks often hold -inf, which no saved weights may; code makes them.
            if isinstance(tensor, torch.nn.Parameter) or tensor.isfinite().all():
                found[name] = tensor
        elif isinstance(tensor, torch.nn.Parameter):
            text = f"parameter '{name}' of layer '{node.name}' is {tensor.dtype}, not float32"
            raise ModelError(f"{text}: call float() of the module.")
    return found


def bind_tensor(tensor: Any, values: Any, gradient: Any) -> None:
    """Let a tensor be a view of arrays, which autograd then adds gradients to.

    values (FloatsXd): Of the tensor's shape.
    gradient (Optional[FloatsXd]): Shaped alike; None if the tensor is frozen.
    """
    import torch

    # As with BLAS: no sum depends on the number of cores, and workers are threads themselves.
    torch.set_num_threads(1)
    tensor.data = torch.as_tensor(values)
    tensor.grad = None if gradient is None else torch.as_tensor(gradient)


def copy_of_shim(shim: Any, has_values: bool) -> Any:
    """A shim and its module for another worker, over the same tensors.

    has_values (bool): Whether parameters keep their values until they are bound. Buffers always
        do: no vector holds masks or whole numbers.
    """
    import torch

    memo: Dict[int, Any] = {}
    for tensor in shim._model.state_dict(keep_vars=True).values():
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        data = tensor.data if has_values or not is_parameter else tensor.data.new_empty(0)
        memo[id(tensor)] = torch.nn.Parameter(data, tensor.requires_grad) if is_parameter else data
    return copy.deepcopy(shim, memo)


def seed_torch(seed: int, step: int, microbatch: int) -> None:
    """Start PyTorch's random draws of one microbatch (see ``stream_seed``)."""
    import torch

    torch.manual_seed(int(stream_seed(seed, step, microbatch).generate_state(1, "uint64")[0]))
