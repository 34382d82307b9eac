"""The parameters of PyTorch modules, which Thinc layers wrap in a shim."""

import copy
from typing import Any, Dict

from thinc.api import Model, PyTorchShim

from ..errors import ModelError
from ..ops.dialog_ops import stream_seed


def tensors_of(node: Model) -> Dict[str, Any]:
    """Return the parameters and buffers of a layer's PyTorch module by name; empty if it wraps
    none.

    RAISES (ModelError): If the layer wraps another kind of model, or a module that cannot be
        trained in float32 by several workers.
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
            # Skip buffers with -inf, such as masks: saved weights must be finite, and the
            # module's code makes these buffers again.
            if isinstance(tensor, torch.nn.Parameter) or tensor.isfinite().all():
                found[name] = tensor
        elif isinstance(tensor, torch.nn.Parameter):
            text = f"parameter '{name}' of layer '{node.name}' is {tensor.dtype}, not float32"
            raise ModelError(f"{text}: call float() on the module.")
    return found


def bind_tensor(tensor: Any, values: Any, gradient: Any) -> None:
    """Make a tensor a view of arrays, to which autograd then adds gradients.

    values (FloatsXd): Has the tensor's shape.
    gradient (Optional[FloatsXd]): Has the same shape; None if the tensor is frozen.
    """
    import torch

    # As for BLAS: sums must not depend on the number of cores, and workers are already threads.
    torch.set_num_threads(1)
    tensor.data = torch.as_tensor(values)
    tensor.grad = None if gradient is None else torch.as_tensor(gradient)


def copy_of_shim(shim: Any, has_values: bool) -> Any:
    """Copy a shim and its module for another worker, over the same tensors.

    has_values (bool): Whether parameters keep their values until they are bound. Buffers always
        keep their values, because the flat vectors hold no masks or whole numbers.
    """
    import torch

    memo: Dict[int, Any] = {}
    for tensor in shim._model.state_dict(keep_vars=True).values():
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        data = tensor.data if has_values or not is_parameter else tensor.data.new_empty(0)
        memo[id(tensor)] = torch.nn.Parameter(data, tensor.requires_grad) if is_parameter else data
    return copy.deepcopy(shim, memo)


def seed_torch(seed: int, step: int, microbatch: int) -> None:
    """Seed PyTorch's random draws for one microbatch (see ``stream_seed``)."""
    import torch

    torch.manual_seed(int(stream_seed(seed, step, microbatch).generate_state(1, "uint64")[0]))
