"""Curves for TensorBoard."""

from typing import Any, Dict, Optional, TextIO, Tuple

from ..config import write_config
from ..errors import MissingPackageError, OutputError
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
from .values import numbers


@registry.loggers("thincdialog.TensorBoard.v1")
def TensorBoard(folder: str) -> Setup:
    """Every number of a row as a curve over steps, and the config as text.

    Needs the package tensorboardX (pip install 'thincdialog[tensorboard]'); TensorBoard
    itself, to look at the curves, may be anywhere: `tensorboard --logdir FOLDER`.

    folder (str): Where the files go. Runs that are to be compared need folders of their
        own below a common one.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            name = "thincdialog.TensorBoard.v1"
            raise MissingPackageError("tensorboardX", "tensorboard", name) from None
        try:
            # What TensorBoard has of this step and later ones is no longer shown.
            purge = run.first_step + 1 if run.first_step else None
            writer = SummaryWriter(folder, purge_step=purge)
            if not run.first_step:
                # Four spaces make it code, line by line, in Markdown.
                text = "    " + write_config(run.config).replace("\n", "\n    ")
                writer.add_text("config", text, 0)
        except OSError as error:
            raise OutputError(
                f"{folder}: thincdialog.TensorBoard.v1 cannot write there "
                f"({error.strerror}). Give it another 'folder'."
            ) from None

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                for name, value in numbers(info).items():
                    writer.add_scalar(name, value, info["step"])
                writer.flush()  # They are in the file when this returns.

        return log_step, writer.close

    return setup
