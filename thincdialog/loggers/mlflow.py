"""Log runs to MLflow."""

import os
import time
from pathlib import Path
from typing import Any, Dict, Optional, TextIO, Tuple

from ..errors import MissingPackageError, OutputError
from ..registry import registry
from .logger import Finalize, LoggedRun, LogStep, Setup
from .values import numbers, recall_id, remember_id, settings

# MLflow's limits on parameters per request, and on characters per parameter.
MAX_PARAMS, MAX_CHARACTERS = 100, 6000
FOLDER = "mlruns"


@registry.loggers("thincdialog.MLflow.v1")
def MLflow(
    experiment: str = "thincdialog", tracking_uri: Optional[str] = None, name: Optional[str] = None
) -> Setup:
    """Log every number of a row as a metric, and the config as parameters, to an MLflow run.

    Needs the package mlflow-skinny (pip install 'thincdialog[mlflow]') or the full package
    mlflow. A resumed run continues in the same MLflow run.

    experiment (str): Name of the experiment; it is created if it does not exist.
    tracking_uri (Optional[str]): Address of a server, such as "http://localhost:5000", or a
        folder; null for the value of MLFLOW_TRACKING_URI, or else the folder "mlruns".
    name (Optional[str]): Name of the run; null for the name of the output folder.
    """

    def setup(run: LoggedRun, stdout: TextIO, stderr: TextIO) -> Tuple[LogStep, Finalize]:
        try:
            from mlflow import MlflowClient
            from mlflow.entities import Metric
        except ImportError:
            raise MissingPackageError("mlflow-skinny", "mlflow", "thincdialog.MLflow.v1") from None
        address = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or FOLDER
        if "://" not in address and address != "databricks":
            address = Path(address).absolute().as_uri()
        if address.startswith("file:"):
            # MLflow 3 prefers a database and refuses folders unless this variable is set.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        try:
            client = MlflowClient(tracking_uri=address)
            run_id = _begin(client, experiment, name, run)
        except Exception as error:  # From the network, the server, or the folder.
            raise OutputError(
                f"thincdialog.MLflow.v1 cannot start a run at {address}: "
                f"{' '.join(str(error).split())}. Give it another 'tracking_uri'."
            ) from error

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                now, step = int(time.time() * 1000), info["step"]
                found = [Metric(name, value, now, step) for name, value in numbers(info).items()]
                client.log_batch(run_id, metrics=found)

        def finalize() -> None:
            stopped = "KILLED" if isinstance(run.error, KeyboardInterrupt) else "FAILED"
            client.set_terminated(run_id, "FINISHED" if run.error is None else stopped)

        return log_step, finalize

    return setup


def _begin(client: Any, experiment: str, name: Optional[str], run: LoggedRun) -> str:
    """Begin an MLflow run, or resume it, and return its id."""
    from mlflow.entities import Param

    known = recall_id(run.output, "mlflow") if run.first_step else None
    if known:
        client.update_run(known, status="RUNNING")
        return known
    found = client.get_experiment_by_name(experiment)
    place = found.experiment_id if found else client.create_experiment(experiment)
    name = name or (Path(run.output).name if run.output else None)
    run_id = client.create_run(place, run_name=name).info.run_id
    remember_id(run.output, "mlflow", run_id)
    params = [
        # Names may contain neither "@" nor "*".
        Param(key.replace("*.", "").replace("@", ""), value[:MAX_CHARACTERS])
        for key, value in settings(run.config).items()
    ]
    for first in range(0, len(params), MAX_PARAMS):
        client.log_batch(run_id, params=params[first : first + MAX_PARAMS])
    return run_id
