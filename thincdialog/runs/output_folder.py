"""Whether a run can be saved into a folder."""

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Iterator, Optional

from ..errors import DialogError, OutputError, TrainingError
from ..files.plain_file import not_plain
from ..files.saved_model import BEST, LAST
from ..files.whole_file import writing
from ..loggers.values import ID_FILES
from .checkpoints import Checkpoints
from .run_log import CANNOT, ELSEWHERE, LOG, RUNNING, is_running
from .run_place import CONFIG
from .scores_file import SCORES


def check_output(
    folder: Optional[Path], force: bool, resume: bool = False, has_checkpoint: bool = True
) -> None:
    """See, before any work is done, that a run can be saved into a folder.

    folder (Optional[Path]): The folder; None to save nothing.
    force (bool): Whether the run that it holds may be replaced.
    resume (bool): Whether it shall go on.
    has_checkpoint (bool): False once it is known that it cannot.
    RAISES (OutputError): If it holds something and neither is set, if it cannot be written,
        if a model would take the place of what is none, or if a run is going on in it.
    """
    if folder is None:
        if resume:
            raise OutputError("--resume goes on with a run: give its folder with --output.")
        return
    with writing(folder, ELSEWHERE, CANNOT):
        check_contents(folder, force, resume, has_checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass


def check_contents(folder: Path, force: bool, resume: bool, has_checkpoint: bool) -> None:
    """See that what a folder holds may be replaced, or can be gone on with; writes nothing.

    RAISES (OutputError): If not.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}  is a file. Choose a folder with --output.")
    if folder.is_dir() and any(folder.iterdir()) and not force and not resume:
        raise OutputError(
            f"{folder}  is not empty. Choose another folder with --output, resume its run "
            "with --resume, or replace it with --force."
        )
    # Later on, it is we who hold it.
    if resume and has_checkpoint and is_running(folder):
        raise OutputError(f"{folder}  {RUNNING}")
    foreign = Checkpoints(folder).foreign()
    if foreign is not None:
        raise OutputError(
            f"{foreign}  is no checkpoint of ours, and might be in the way. "
            "Choose another folder with --output."
        )
    # A link might lead to a file of somebody else's, and a pipe make us wait.
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
                f"{model}  is no saved model, so --force does not replace it. "
                "Choose another folder with --output."
            )
        if model.exists() and not has_checkpoint and not force:
            raise OutputError(
                f"{folder}  holds {name}, but no checkpoint to resume from. Choose another folder "
                "with --output, or add --force to start again."
            )


@contextmanager
def taken_back(folder: Optional[Path]) -> Iterator[None]:
    """If something turns out wrong before anything was learnt (the config only with the data or
    with what is installed, the data itself, the model to begin with), leave a folder that was
    empty, or was not there, as it was: the next try shall not find it taken.

    folder (Optional[Path]): The folder; None to save nothing.
    """
    was_there = folder is not None and folder.is_dir()
    was_empty = folder is not None and not (was_there and any(folder.iterdir()))
    try:
        yield
    except (OutputError, TrainingError):
        # The folder may be another run's by now; and the log tells how training went wrong.
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
