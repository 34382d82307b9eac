"""Log runs to Weights & Biases."""

from pathlib import Path
from typing import Any, Dict, List, Optional, TextIO, Tuple

from ..errors import OutputError, importing
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
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
    """Log every number of a row, and the config, to a run of Weights & Biases.

    Needs the package wandb (pip install 'thincdialog[wandb]') and, except offline, an account
    (`wandb login`, or WANDB_API_KEY). A resumed run continues in the same W&B run.

    project (str): Name of the project.
    name (Optional[str]): Name of the run; null for the name of the output folder.
    entity (Optional[str]): User or team; null for your own.
    group (Optional[str]): Group of runs that belong together.
    tags (Optional[List[str]]): Labels of the run.
    mode (Optional[str]): "online", "offline" (send it later with `wandb sync`) or
        "disabled"; null for the value of WANDB_MODE.
    folder (Optional[str]): Folder for wandb's own files; null for the output folder.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        with importing("wandb", "thincdialog.WandB.v1"):
            import wandb
        # wandb itself checks the mode.
        more: Dict[str, Any] = {"name": name, "dir": folder, "mode": mode}
        if run.output:
            more.update(name=name or Path(run.output).name, dir=folder or run.output)
        if run.first_step:
            more.update(id=recall_id(run.output, "wandb"), resume="allow")
        try:
            if more["dir"]:
                Path(more["dir"]).mkdir(parents=True, exist_ok=True)
            there = wandb.init(
                project=project,
                entity=entity,
                group=group,
                tags=tags,
                config=dict(run.config),
                # Otherwise wandb would copy all console output, including the progress bar.
                settings=wandb.Settings(console="off"),
                **more,
            )
        except Exception as error:  # wandb raises many kinds of errors, also from the network.
            raise OutputError(
                f"thincdialog.WandB.v1 cannot start a run: {' '.join(str(error).split())}. "
                'With mode = "offline" it needs no network and no account.'
            ) from error
        remember_id(run.output, "wandb", there.id)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                there.log(numbers(info), step=info["step"])

        def finalize() -> None:
            # This waits until everything is sent.
            there.finish(exit_code=0 if run.error is None else 1)

        return log_step, finalize

    return setup
