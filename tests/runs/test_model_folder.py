"""A model folder is replaced as a whole or not at all."""

import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.api import Experiment, ModelError, evaluate, load, save
from thincdialog.cli.main import main
from thincdialog.errors import OutputError, ProtocolError
from thincdialog.runs.model_folder import save_model


class OneWord:
    """An agent whose state is one word. Raises ``trouble`` while it is written."""

    def __init__(self, word, trouble=None):
        self.word, self.trouble = word, trouble

    def to_disk(self, folder):
        (folder / "word.txt").write_text(self.word)
        if self.trouble is not None:
            raise self.trouble


def test_model_folder_keeps_the_old_model_if_the_new_one_fails(tmp_path):
    folder = tmp_path / "model-best"
    save_model(OneWord("old"), folder, "", {})
    with pytest.raises(OutputError, match="the disk may be full .*80 requested and 8 written"):
        save_model(OneWord("new", OSError("80 requested and 8 written")), folder, "", {})
    with pytest.raises(KeyboardInterrupt):
        save_model(OneWord("new", KeyboardInterrupt()), folder, "", {})
    assert (folder / "word.txt").read_text() == "old" and list(tmp_path.iterdir()) == [folder]


def test_model_folder_survives_an_interrupt_between_the_renames(tmp_path, monkeypatch):
    folder = tmp_path / "model-best"
    save_model(OneWord("old"), folder, "", {})
    rename = type(folder).rename
    calls = []

    def interrupted(path, target):
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(type(folder), "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(OneWord("new"), folder, "", {})
    assert (folder / "word.txt").read_text() == "old" and list(tmp_path.iterdir()) == [folder]


def test_save_an_experiment_that_was_trained_by_hand(tmp_path):
    experiment = Experiment.from_config(RANKER)
    train = experiment.training_split()
    with experiment.working():
        experiment.agent.initialize(train, tokenizer=experiment.tokenizer)
        with experiment.make_world(train, experiment.agent) as world:
            while not world.epoch_done():
                world.parley()
                experiment.agent.update(experiment.optimizer)
    save(experiment, tmp_path / "new" / "hand")
    loaded = Experiment.from_model(tmp_path / "new" / "hand")
    assert loaded.agent.weights.tobytes() == experiment.agent.weights.tobytes()
    assert evaluate(tmp_path / "new" / "hand")["examples"] > 0
    card = (tmp_path / "new" / "hand" / "README.md").read_text()
    assert "steps," not in card and "None were measured when it was saved." in card
    save(experiment, tmp_path / "new" / "hand")  # An old model is replaced; other folders are not.
    with pytest.raises(OutputError, match="new  exists, but is not a saved model"):
        save(experiment, tmp_path / "new")


def test_save_refuses_an_agent_without_weights(tmp_path):
    experiment = Experiment.from_config("configs/quickstart.cfg")
    with pytest.raises(ProtocolError, match=r"ranker has no weights yet: call initialize\(\)"):
        save(experiment, tmp_path / "model")
    experiment = Experiment.from_config("configs/intent.cfg", overrides={"paths.train": "a.jsonl"})
    with pytest.raises(ProtocolError, match=r"classifier has no weights yet: call initialize\(\)"):
        save(experiment, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_run_folder_is_loaded_as_its_best_model(tmp_path, capsys):
    quietly_train(output=tmp_path / "run", training__n_samples=0)
    of_best = evaluate(tmp_path / "run" / "model-best")
    assert evaluate(tmp_path / "run") == of_best
    assert load(tmp_path / "run").path == tmp_path / "run" / "model-best"
    assert main(["compare", str(tmp_path / "run"), str(tmp_path / "run" / "model-best")]) == 0
    assert "No significant difference in" in capsys.readouterr().out
    (tmp_path / "run" / "model-best").rename(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="no meta.json. Did you mean .*model-last"):
        evaluate(tmp_path / "run")
