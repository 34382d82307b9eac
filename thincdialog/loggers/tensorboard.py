"""Log runs to TensorBoard."""

from typing import Any, Dict, Optional, TextIO, Tuple

from ..config import write_config
from ..errors import OutputError, importing
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
from .values import numbers


@registry.loggers("thincdialog.TensorBoard.v1")
def TensorBoard(folder: str) -> Setup:
    """Write every number of a row as a curve over steps, and the config as text.

    Needs the package tensorboardX (pip install 'thincdialog[tensorboard]'). TensorBoard itself,
    which shows the curves, can run on any machine: `tensorboard --logdir FOLDER`.

    folder (str): Folder for the files. To compare runs, give each run its own folder inside a
        common folder.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        with importing("tensorboard", "thincdialog.TensorBoard.v1"):
            from tensorboardX import SummaryWriter
        try:
            # TensorBoard no longer shows earlier entries for this step and later ones.
            purge = run.first_step + 1 if run.first_step else None
            writer = SummaryWriter(folder, purge_step=purge)
            if not run.first_step:
                # In Markdown, four spaces make each line code.
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
                writer.flush()  # Rows must be in the file when this function returns.

        return log_step, writer.close

    return setup
