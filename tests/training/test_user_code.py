"""What a user registers with ``--code`` stands in by its name."""

import io

import pytest

from tests.training.examples import RANKER
from thincdialog.api import ConfigError, DialogError, evaluate, load, train
from thincdialog.runs.run_keeper import BEST

CODE = '''
from thinc.api import Maxout, Model, chain, with_array
from thincdialog.api import IterableTeacher, registry
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed


@registry.layers("max_words.v1")
def max_words(width: int) -> Model:
    """The highest value of each feature over all words.

    width (int): Width of the output.
    """
    return chain(TokenEmbed(width), with_array(Maxout(width, nP=2)), pool("max"))


@registry.teachers("colours.v1")
def colours(n_times: int):
    rows = [("red", "stop"), ("green", "go"), ("amber", "wait")] * n_times
    return IterableTeacher({"train": rows, "dev": rows, "test": rows})
'''

CONFIG = """
[tasks.colours]
@teachers = "colours.v1"
n_times = 4

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@layers = "max_words.v1"
width = 8

[training]
max_epochs = 40.0
target_score = 1.0

[training.optimizer]
learn_rate = 0.02
"""


@pytest.fixture()
def code(tmp_path_factory):
    # One path for the whole session: a file is imported once in a process.
    path = tmp_path_factory.getbasetemp() / "mine.py"
    path.write_text(CODE)
    return path


def quiet():
    return {"stdout": io.StringIO(), "stderr": io.StringIO()}


def test_user_code_layer_and_teacher_train_and_load(tmp_path, code):
    result = train(CONFIG, output=tmp_path / "out", code=code, **quiet())
    assert result.scores["test"]["accuracy"] == 1.0
    assert load(tmp_path / "out" / BEST, code=code).respond("green") == "go"
    assert evaluate(tmp_path / "out" / BEST, code=code)["accuracy"] == 1.0


def test_user_code_layer_stands_in_a_ranker(code):
    text = RANKER.replace(
        '@models = "thincdialog.BagEncoder.v1"\nwidth = 16\ndropout = 0.2',
        '@layers = "max_words.v1"\nwidth = 16',
    )
    result = train(text, code=code, overrides={"training.max_steps": 3}, **quiet())
    assert result.n_parameters > 0


def test_user_code_argument_mistake_shows_its_documentation(code):
    with pytest.raises(ConfigError, match="no argument 'widht' - did you mean 'width'"):
        train(CONFIG.replace("width = 8", "widht = 8"), code=code, **quiet())


def test_user_code_that_is_missing_or_broken(tmp_path):
    with pytest.raises(DialogError, match="no such Python file"):
        train(CONFIG, code=tmp_path / "none.py", **quiet())
    broken = tmp_path / "broken.py"
    broken.write_text("import thincdialog\nx = 1 / 0\n")
    with pytest.raises(DialogError, match="broken.py:2"):
        train(CONFIG, code=broken, **quiet())
