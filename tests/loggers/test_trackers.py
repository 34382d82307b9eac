"""TensorBoard, Weights & Biases and MLflow are really used, and the logged values are read back."""

import io
import math
import struct
import sys
import time
from pathlib import Path

import pytest

from thincdialog.errors import MissingPackageError, OutputError
from thincdialog.loggers import LoggedRun
from thincdialog.loggers.mlflow import MLflow
from thincdialog.loggers.tensorboard import TensorBoard
from thincdialog.loggers.values import numbers, settings
from thincdialog.loggers.wandb import WandB

CONFIG = {
    "system": {"seed": 3},
    "tasks": {"cafe": {"mutators": {"*": {"flatten": {"@mutators": "thincdialog.Flatten.v1"}}}}},
    "training": {"max_epochs": 2.5, "target_score": None},
}


def make_info(step):
    return {
        "step": step, "epoch": step / 10, "examples": step * 16, "seconds": 1.5,
        "loss_per_example": 2.0 / step if step else None, "score_name": "hits@1", "score": 0.5,
        "scores": {"hits@1": step / 100, "loss": 3.0, "cafe/hits@1": 0.25}, "is_best": True,
        "learn_rate": 0.001, "gradient_norm": None, "total_steps": 200,
    }  # fmt: skip


def log(setup, steps, output=None, start=0, error=None, config=CONFIG):
    run = LoggedRun(config, str(output) if output else None, start)
    log_step, finalize = setup(run, io.StringIO(), io.StringIO())
    for step in steps:
        log_step(None)
        log_step(make_info(step))
    run.error = error
    finalize()


def test_trackers_names_of_numbers():
    assert numbers(make_info(10)) == {
        "train/epoch": 1.0, "train/examples": 160.0, "train/loss_per_example": 0.2,
        "train/learn_rate": 0.001, "train/seconds": 1.5, "dev/hits_at_1": 0.1, "dev/loss": 3.0,
        "dev/cafe/hits_at_1": 0.25,
    }  # fmt: skip
    assert numbers({"step": 1, "scores": {"größe %": math.inf}}) == {"dev/gr__e__": math.inf}


def test_trackers_settings():
    assert settings(CONFIG) == {
        "system.seed": "3",
        "tasks.cafe.mutators.*.flatten.@mutators": '"thincdialog.Flatten.v1"',
        "training.max_epochs": "2.5",
        "training.target_score": "null",
    }


def read_events(folder):
    """Return scalars and texts, and the steps at which earlier ones were withdrawn."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(Path(folder).glob("events.out.tfevents.*")):
        data = path.read_bytes()
        at = 0
        while at < len(data):  # Length, its checksum, the event, its checksum.
            (size,) = struct.unpack("<Q", data[at : at + 8])
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += size + 16
            if event.session_log.status == 1 and event.step:
                found.append(("purge", event.step, None))
            for value in event.summary.value:
                text = b"".join(value.tensor.string_val).decode()
                found.append((value.tag, event.step, text or value.simple_value))
    return found


def test_tensorboard_scalars_and_config(tmp_path):
    pytest.importorskip("tensorboardX")
    log(TensorBoard(str(tmp_path / "tb")), [0, 10])
    found = read_events(tmp_path / "tb")
    loss = [entry[1:] for entry in found if entry[0] == "train/loss_per_example"]
    hits = [entry[1:] for entry in found if entry[0] == "dev/hits_at_1"]
    assert loss == [(10, pytest.approx(0.2))]
    assert hits == [(0, 0.0), (10, pytest.approx(0.1))]
    (text,) = [entry[2] for entry in found if entry[0].startswith("config")]
    assert "    [training]\n    max_epochs = 2.5" in text


def test_tensorboard_resumed_run_withdraws_later_points(tmp_path):
    pytest.importorskip("tensorboardX")
    log(TensorBoard(str(tmp_path)), [0, 10, 20])
    log(TensorBoard(str(tmp_path)), [20], start=10)
    assert ("purge", 11, None) in read_events(tmp_path)


def test_tensorboard_unwritable_is_one_error(tmp_path):
    pytest.importorskip("tensorboardX")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="TensorBoard.v1 cannot write there"):
        log(TensorBoard(str(tmp_path / "file" / "tb")), [])


@pytest.fixture
def wandb(monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_DIR", "WANDB_NAME", "WANDB_RUN_ID", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def read_records(folder):
    """Return the records of an offline run: blocks of 32 KiB with parts of records, as in
    LevelDB."""
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = Path(folder).glob("wandb/offline-run-*/run-*.wandb")
    data = path.read_bytes()
    at, record = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # A whole record, or its last part.
            yield Record.FromString(record)
            record = b""


def wait_for_records(folder):
    """Return all records. A process of wandb writes them, even after ``finish`` has returned."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        records = list(read_records(folder))
        if records and records[-1].WhichOneof("record_type") == "exit":
            return records
        time.sleep(0.05)
    raise AssertionError("wandb has not written the end of its run")


def test_wandb_offline_run_is_on_disk(tmp_path, wandb):
    log(WandB("cafe", tags=["small"]), [0, 10], output=tmp_path, error=ValueError())
    records = wait_for_records(tmp_path)
    (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert (run.project, run.display_name, list(run.tags)) == ("cafe", tmp_path.name, ["small"])
    config = {update.key: update.value_json for update in run.config.update}
    assert config["training"] == '{"max_epochs":2.5,"target_score":null}'
    rows = [
        {item.key or "/".join(item.nested_key): float(item.value_json) for item in row.history.item}
        for row in records
        if row.WhichOneof("record_type") == "history"
    ]
    assert [row["_step"] for row in rows] == [0, 10]
    assert (rows[1]["train/loss_per_example"], rows[1]["dev/hits_at_1"]) == (0.2, 0.1)
    assert "train/loss_per_example" not in rows[0]
    assert [r.exit.exit_code for r in records if r.WhichOneof("record_type") == "exit"] == [1]
    assert (tmp_path / "wandb.id").read_text().strip() == run.run_id


def test_wandb_resumed_run_keeps_its_id(tmp_path, wandb):
    def run_id(folder, steps, start=0):
        log(WandB("cafe", folder=str(tmp_path / folder)), steps, output=tmp_path, start=start)
        (path,) = (tmp_path / folder).glob("wandb/offline-run-*/run-*.wandb")
        return path.stem.partition("-")[2]

    first = run_id("a", [0, 10])
    assert first == run_id("b", [10, 20], start=5) != run_id("c", [0])


@pytest.mark.parametrize("mode", ["online", "nonsense"])
def test_wandb_refusal_is_one_error_with_a_way_out(tmp_path, wandb, monkeypatch, mode):
    # There is no account: no key is configured, and there is no terminal to ask on.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    with pytest.raises(OutputError, match='cannot start a run: .*mode = "offline"'):
        log(WandB("cafe", mode=mode), [], output=tmp_path)


@pytest.fixture
def client(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return mlflow.MlflowClient(tracking_uri=(tmp_path / "runs").as_uri())


def read_runs(client, experiment="cafe"):
    return client.search_runs([client.get_experiment_by_name(experiment).experiment_id])


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_mlflow_file_store_read_back(tmp_path, client):
    output = tmp_path / "small"
    output.mkdir()
    log(MLflow("cafe", str(tmp_path / "runs")), [0, 10], output)
    (run,) = read_runs(client)
    assert (run.info.run_name, run.info.status) == ("small", "FINISHED")
    assert run.data.params == {
        "system.seed": "3",
        "tasks.cafe.mutators.flatten.mutators": '"thincdialog.Flatten.v1"',
        "training.max_epochs": "2.5",
        "training.target_score": "null",
    }
    history = client.get_metric_history(run.info.run_id, "dev/hits_at_1")
    assert [(point.step, point.value) for point in history] == [(0, 0.0), (10, 0.1)]
    assert run.data.metrics["train/loss_per_example"] == 0.2
    assert run.data.metrics["dev/cafe/hits_at_1"] == 0.25


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_mlflow_resumed_run_is_the_same_run(tmp_path, client, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(tmp_path / "runs"))
    log(MLflow("cafe"), [0, 10], tmp_path, error=KeyboardInterrupt())
    (run,) = read_runs(client)
    assert run.info.status == "KILLED"
    log(MLflow("cafe"), [20], tmp_path, start=10, error=ValueError())
    (run,) = read_runs(client)
    assert run.info.status == "FAILED"
    history = client.get_metric_history(run.info.run_id, "train/epoch")
    assert [point.step for point in history] == [0, 10, 20]


def test_mlflow_many_settings_are_sent_in_parts(tmp_path, client):
    config = {"section": {f"key{i}": "x" * 7000 if i == 5 else i for i in range(250)}}
    log(MLflow("cafe", str(tmp_path / "runs")), [], config=config)
    (run,) = read_runs(client)
    assert len(run.data.params) == 250 and len(run.data.params["section.key5"]) == 6000


def test_mlflow_unwritable_is_one_error(tmp_path, client):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="MLflow.v1 cannot start a run at file://.*tracking_uri"):
        log(MLflow("cafe", str(tmp_path / "file")), [])


@pytest.mark.parametrize(
    "setup, package, extra",
    [
        (TensorBoard("t"), "tensorboardX", "tensorboard"),
        (WandB("cafe"), "wandb", "wandb"),
        (MLflow(), "mlflow", "mlflow"),
    ],
)
def test_trackers_missing_package_is_one_line(setup, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError) as raised:
        setup(None, None, None)
    assert f"pip install 'thincdialog[{extra}]'" in str(raised.value)
    assert "\n" not in str(raised.value)
