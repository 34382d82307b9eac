"""Selection of the ops for a run: for the CPU or a GPU."""

from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Iterator, Mapping, Union

from thinc.api import Ops, get_current_ops, set_current_ops
from thinc.util import set_active_gpu

from ..errors import DialogError, MissingPackageError
from .compiled import load_kernels
from .dialog_cupy_ops import DialogCupyOps
from .dialog_fast_ops import DialogFastOps
from .dialog_ops import DialogNumpyOps

DialogOps = Union[DialogNumpyOps, DialogCupyOps]


def get_dialog_ops(gpu_id: int = -1, ops: str = "numpy") -> DialogOps:
    """Return ops for the CPU or for one GPU. The only side effect is to set CuPy's current device.

    gpu_id (int): Number of the GPU, from 0; -1 for the CPU.
    ops (str): Ops for the CPU: "numpy", "fast" for compiled kernels, or "auto" (see ``cpu_ops``).
        Ignored for a GPU, which has its own ops.
    RETURNS (DialogOps): New ops with their own random generator.
    RAISES (DialogError): If a GPU is requested but CuPy or the GPU is missing, or compiled
        kernels are requested but numba is missing.
    """
    if gpu_id < 0:
        return DialogFastOps() if cpu_ops(ops) == "fast" else DialogNumpyOps()
    on_cpu = "or use --gpu-id -1 for the CPU."
    if find_spec("cupy") is None:
        raise DialogError(
            f"gpu_id = {gpu_id} asks for a GPU, but CuPy is not installed. Install it with: "
            f"pip install 'thincdialog[cuda12x]' (or cuda13x), {on_cpu}"
        )
    try:
        import cupy
        import cupy.cublas
        import cupyx  # noqa: F401

        n_gpus = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DialogError(
            f"gpu_id = {gpu_id} asks for a GPU, and CuPy is installed, but does not work here: "
            f"{reason}. Check the driver with nvidia-smi, and get CUDA's libraries with: "
            f"pip install 'cupy-cuda12x[ctk]' (or cuda13x), {on_cpu}"
        ) from None
    if gpu_id >= n_gpus:
        raise DialogError(
            f"gpu_id = {gpu_id}, but this machine has {n_gpus} GPU(s), numbered from 0. "
            "Use --gpu-id with one of them, or -1 for the CPU."
        )
    set_active_gpu(gpu_id)
    return DialogCupyOps(device_id=gpu_id)


def cpu_ops(ops: str) -> str:
    """Return the name of the CPU ops for a setting: "auto" becomes "fast" if numba can be imported,
    else "numpy"."""
    if ops != "auto":
        return ops
    try:
        load_kernels("rows")
    except MissingPackageError:
        return "numpy"
    return "fast"


def ops_to_answer(system: Mapping[str, Any]) -> DialogOps:
    """Return the ops that the config of a trained model asks for. If numba is missing, use NumPy
    instead of compiled kernels (results differ in the last digit at most).

    system (Mapping[str, Any]): Section [system] of the config.
    RAISES (DialogError): If a GPU is requested but CuPy or the GPU is missing.
    """
    try:
        return get_dialog_ops(system["gpu_id"], system["ops"])
    except MissingPackageError:
        return get_dialog_ops(system["gpu_id"])


@contextmanager
def using_ops(ops: Ops) -> Iterator[Ops]:
    """Make ``ops`` Thinc's current ops, which new models use, within a context."""
    before = get_current_ops()
    set_current_ops(ops)
    try:
        yield ops
    finally:
        set_current_ops(before)
