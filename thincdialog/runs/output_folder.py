"""Checks that a run can be saved into a folder."""

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Iterator, Optional

from ..errors import DialogError, OutputError, TrainingError
from ..files.plain_file import not_plain
from ..files.saved_model import BEST, CONFIG, LAST
from ..files.whole_file import writing
from ..loggers.values import ID_FILES
from .checkpoints import Checkpoints
from .run_log import CANNOT_BE, LOG, OTHER_FOLDER, RUNNING, is_running
from .scores_file import SCORES


def check_output(folder: Optional[Path], force: bool, resume: bool = False) -> None:
    """Check, before any work is done, that a run can be saved into a folder.

    folder (Optional[Path]): The folder; None to save nothing.
    force (bool): Whether to replace the run in the folder.
    resume (bool): Whether to resume the run in the folder.
    RAISES (OutputError): If the folder is not empty and neither flag is set, if it cannot be
        written, if a model would replace something else, or if a run is in progress in it.
    """
    if folder is None:
        if resume:
            raise OutputError("--resume continues a run: give its folder with --output.")
        return
    with writing(folder, OTHER_FOLDER, CANNOT_BE):
        check_contents(folder, force, resume)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass


def check_contents(folder: Path, force: bool, resume: bool) -> None:
    """Check that a folder's contents may be replaced, or can be resumed; write nothing.

    RAISES (OutputError): If they must not be replaced, or cannot be resumed.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}  is a file. Choose a folder with --output.")
    if folder.is_dir() and any(folder.iterdir()) and not force and not resume:
        raise OutputError(
            f"{folder}  is not empty. Choose another folder with --output, resume its run "
            "with --resume, or replace it with --force."
        )
    if resume and is_running(folder):
        raise OutputError(f"{folder}  {RUNNING}")
    foreign = Checkpoints(folder).foreign()
    if foreign is not None:
        raise OutputError(
            f"{foreign}  is not a checkpoint of thincdialog, and might be in the way. "
            "Choose another folder with --output."
        )
    # A link may lead to a file outside the folder, and a pipe may block.
    for name in (CONFIG, LOG, SCORES, *ID_FILES):
        reason = not_plain(folder / name)
        if reason:
            raise OutputError(
                f"{folder / name}  is in the way: {reason}. Remove it, or choose another folder "
                "with --output."
            )
    for name in (BEST, LAST):
        model = folder / name
        is_empty = not model.exists() or (model.is_dir() and not any(model.iterdir()))
        if not is_empty and not (model / "meta.json").is_file():
            raise OutputError(
                f"{model}  is not a saved model, so --force does not replace it. "
                "Choose another folder with --output."
            )


def check_start(folder: Optional[Path]) -> None:
    """Check that a run without a checkpoint can start from scratch, although it should resume.

    RAISES (OutputError): If the folder holds a model, which would be lost.
    """
    for name in (BEST, LAST):
        if folder is not None and (folder / name).exists():
            raise OutputError(
                f"{folder}  holds {name}, but no checkpoint to resume from. Choose another folder "
                "with --output, or add --force to start again."
            )


@contextmanager
def taken_back(folder: Optional[Path]) -> Iterator[None]:
    """Clean up if an error occurs in the block before the first training result is saved, for
    instance in the config, the data or the initial model: make a folder empty again that was empty
    before, and delete one that did not exist, so that the next attempt can use it.

    folder (Optional[Path]): The folder; None to save nothing.
    """
    was_there = folder is not None and folder.is_dir()
    was_empty = folder is not None and not (was_there and any(folder.iterdir()))
    try:
        yield
    except (OutputError, TrainingError):
        # OutputError: another run may use the folder now. TrainingError: keep the log, which shows
        # how training failed.
        raise
    except DialogError:
        checkpoints = Checkpoints(folder or Path())
        has_learnt = folder is None or (folder / LAST).exists() or any(checkpoints.steps())
        if folder is not None and was_empty and folder.is_dir() and not has_learnt:
            checkpoints.remove()
            for name in (CONFIG, LOG):
                (folder / name).unlink(missing_ok=True)
            if not was_there and not any(folder.iterdir()):
                folder.rmdir()
        raise
