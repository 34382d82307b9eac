"""Curves for TensorBoard."""

from typing import Any, Dict, Optional, TextIO

from ..config import write_config
from ..errors import MissingPackageError, OutputError
from ..registry import registry
from .logger import Logger, Setup, Start
from .values import numbers


@registry.loggers("thincdialog.TensorBoard.v1")
def TensorBoard(folder: str) -> Setup:
    """Every number of a row as a curve over steps, and the config as text.

    Needs the package tensorboardX (pip install 'thincdialog[tensorboard]'); TensorBoard
    itself, to look at the curves, may be anywhere: `tensorboard --logdir FOLDER`.

    folder (str): Where the files go. Runs that are to be compared need folders of their
        own below a common one.
    """

    def setup(stdout: TextIO, stderr: TextIO, total_steps: Optional[float]) -> Logger:
        try:
            import tensorboardX  # noqa: F401
        except ImportError:
            name = "thincdialog.TensorBoard.v1"
            raise MissingPackageError("tensorboardX", "tensorboard", name) from None
        return TensorBoardLogger(folder)

    return setup


class TensorBoardLogger(Logger):
    """See ``TensorBoard``.

    folder (str): Where the files go.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.writer: Any = None

    def start(self, start: Start) -> None:
        """Open the file; of a resumed run, hide what will be written once more.

        RAISES (OutputError): If it cannot be written.
        """
        from tensorboardX import SummaryWriter

        try:
            # What TensorBoard has of this step and later ones is no longer shown.
            purge = start.step + 1 if start.step else None
            self.writer = SummaryWriter(self.folder, purge_step=purge)
            if not start.step:
                text = write_config(start.config)
                # Four spaces make it code, line by line, in Markdown.
                self.writer.add_text("config", "    " + text.replace("\n", "\n    "), 0)
        except OSError as error:
            raise OutputError(
                f"{self.folder}: thincdialog.TensorBoard.v1 cannot write there "
                f"({error.strerror}). Give it another 'folder'."
            ) from None

    def row(self, info: Dict[str, Any]) -> None:
        """Add a point to each curve; they are in the file when this returns."""
        for name, value in numbers(info).items():
            self.writer.add_scalar(name, value, info["step"])
        self.writer.flush()

    def finish(self) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()
