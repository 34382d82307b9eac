"""Runs for Weights & Biases."""

from pathlib import Path
from typing import Any, Dict, List, Optional, TextIO

from ..errors import MissingPackageError, OutputError
from ..registry import registry
from .logger import Logger, Setup, Start
from .values import numbers, recall_id, remember_id


@registry.loggers("thincdialog.WandB.v1")
def WandB(
    project: str,
    name: Optional[str] = None,
    entity: Optional[str] = None,
    group: Optional[str] = None,
    tags: Optional[List[str]] = None,
    mode: Optional[str] = None,
    folder: Optional[str] = None,
) -> Setup:
    """Every number of a row, and the config, in a run of Weights & Biases.

    Needs the package wandb (pip install 'thincdialog[wandb]') and, unless it is offline, an
    account (`wandb login`, or WANDB_API_KEY). A resumed run goes on in the same one.

    project (str): Name of the project.
    name (Optional[str]): Name of the run; null for that of the output folder.
    entity (Optional[str]): User or team; null for your own.
    group (Optional[str]): Group of runs that belong together.
    tags (Optional[List[str]]): Labels of the run.
    mode (Optional[str]): "online", "offline" (send it later with `wandb sync`) or
        "disabled"; null for what WANDB_MODE says.
    folder (Optional[str]): Where wandb keeps its own files; null for the output folder.
    """

    def setup(stdout: TextIO, stderr: TextIO, total_steps: Optional[float]) -> Logger:
        try:
            import wandb  # noqa: F401
        except ImportError:
            raise MissingPackageError("wandb", "wandb", "thincdialog.WandB.v1") from None
        given = {"project": project, "entity": entity, "group": group, "tags": tags, "mode": mode}
        return WandBLogger({**given, "name": name, "dir": folder})

    return setup


class WandBLogger(Logger):
    """See ``WandB``.

    given (Dict[str, Any]): What ``wandb.init`` is called with.
    """

    def __init__(self, given: Dict[str, Any]):
        self.given = given
        self.run: Any = None
        self.exit_code = 0

    def start(self, start: Start) -> None:
        """Begin a run, or go on with it.

        RAISES (OutputError): If Weights & Biases cannot.
        """
        import wandb

        given = dict(self.given)
        if start.output:
            given["name"] = given["name"] or Path(start.output).name
            given["dir"] = given["dir"] or start.output
        if start.step:
            given.update(id=recall_id(start.output, "wandb"), resume="allow")
        try:
            if given["dir"]:
                Path(given["dir"]).mkdir(parents=True, exist_ok=True)
            # It would otherwise copy all that is printed, the progress bar included.
            options = wandb.Settings(console="off")
            self.run = wandb.init(config=dict(start.config), settings=options, **given)
        except Exception as error:  # It has errors of a dozen kinds, also from the network.
            raise OutputError(
                f"thincdialog.WandB.v1 cannot begin a run: {' '.join(str(error).split())}. "
                'With mode = "offline" it needs no network and no account.'
            ) from error
        remember_id(start.output, "wandb", self.run.id)

    def row(self, info: Dict[str, Any]) -> None:
        """Send the numbers."""
        self.run.log(numbers(info), step=info["step"])

    def failed(self, error: BaseException) -> None:
        """Mark the run as failed."""
        self.exit_code = 1

    def finish(self) -> None:
        """End the run; waits until all is sent."""
        if self.run is not None:
            self.run.finish(exit_code=self.exit_code)
