import inspect
import re

import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog import api
from thincdialog.api import registry
from thincdialog.config import CodeError, distinct_names, load_code


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_code_registers_functions_once(tmp_path):
    text = "from thincdialog.api import registry\nregistry.layers('test_code.A.v1', func=int)\n"
    path = write(tmp_path / "my_code.py", text)
    [module] = load_code(path)
    assert registry.layers.get("test_code.A.v1") is int
    assert load_code([str(path), path]) == [module, module]
    assert load_code(tmp_path / "." / "my_code.py") == [module]
    assert load_code(None) == load_code([]) == []


def test_code_imports_files_of_one_name(tmp_path):
    [first] = load_code(write(tmp_path / "same.py", "x = 1\n"))
    [second] = load_code(write(tmp_path / "sub" / "same.py", "x = 2\n"))
    assert (first.x, second.x) == (1, 2)


@pytest.mark.parametrize(
    "files, names",
    [
        ([], []),
        (["a/one.py", "b/two.py"], ["one.py", "two.py"]),
        (["a/one.py", "b/two.py", "b/one.py"], ["a/one.py", "two.py", "b/one.py"]),
        (["x/a/one.py", "y/a/one.py"], ["x/a/one.py", "y/a/one.py"]),
        (["a/one.py", "a/../a/one.py"], ["one.py"]),
    ],
)
def test_code_files_are_named_with_enough_folders_to_be_distinct(files, names, tmp_path):
    assert distinct_names([str(tmp_path / file) for file in files]) == names


def test_code_files_of_one_name_are_distinct_in_the_model_card(tmp_path):
    files = [str(write(tmp_path / folder / "same.py", "x = 1\n")) for folder in "ab"]
    quietly_train(output=tmp_path / "run", code=files, training__max_steps=1)
    card = (tmp_path / "run" / "model-best" / "README.md").read_text()
    assert "`evaluate` needs `a/same.py`, `b/same.py`." in card
    assert "evaluate model-best --code a/same.py --code b/same.py\n" in card


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n\nx +\n", ":3  cannot be imported: SyntaxError: invalid syntax"),
        ("x = 1\ny = 1 / 0\n", ":2  cannot be imported: ZeroDivisionError: division by zero"),
        ("x = 1\nraise SystemExit(3)\n", ":2  cannot be imported: SystemExit: 3"),
        ("import no_such_module_there\n", ":1  cannot be imported: ModuleNotFoundError: No mod"),
        ("def f():\n    return no_name\n\nf()\n", ":2  cannot be imported: NameError"),
    ],
)
def test_code_names_the_line_that_fails(tmp_path, text, words):
    path = write(tmp_path / "bad.py", text)
    for _ in range(2):  # Nothing is kept of the first attempt.
        with pytest.raises(CodeError) as caught:
            load_code(path)
        assert str(caught.value).startswith(f"{path}{words}")


def test_code_missing_file(tmp_path):
    with pytest.raises(CodeError, match="there is no such Python file"):
        load_code(tmp_path / "none.py")
    with pytest.raises(CodeError, match=r"should end in \.py"):
        load_code(write(tmp_path / "code.txt", "x = 1"))


NOTES = "with open({!r}, 'a') as log:\n    log.write(__file__[-4])\n"


def test_code_takes_several_files_in_their_order(tmp_path):
    log = tmp_path / "log"
    names = ("b", "a", "c")
    text = NOTES.format(str(log))
    paths = [write(tmp_path / f"{name}.py", text) for name in names]
    assert [module.__file__ for module in load_code(paths)] == list(map(str, paths))
    load_code(paths[::-1])
    assert log.read_text() == "bac"


def functions():
    """Return every public function that takes code."""
    for name in api.__all__:
        if inspect.isfunction(getattr(api, name)):
            function = getattr(api, name)
            if "code" in inspect.signature(function).parameters:
                yield function
    yield api.Chatbot
    yield api.Experiment.from_config
    yield api.Experiment.from_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the folder of a saved model."""
    folder = tmp_path_factory.mktemp("code") / "out"
    return quietly_train(output=folder, training__max_steps=1)[0].output / "model-best"


@pytest.mark.parametrize("function", list(functions()), ids=lambda function: function.__qualname__)
def test_code_of_several_files_is_taken_by_every_function(function, model, tmp_path):
    log = tmp_path / "log"
    text = NOTES.format(str(log))
    files = [write(tmp_path / f"{name}.py", text) for name in "ab"]
    needs_model = "config" not in inspect.signature(function).parameters
    first = [model if needs_model else RANKER]
    more = {
        "compare": [model],
        "predict": [["hi"]],
        "sweep": [{"system.seed": [1]}, tmp_path / "o"],
    }
    first += more.get(function.__name__, [])
    with pytest.raises(CodeError, match="none.py  there is no such Python file"):
        found = function(*first, code=[*files, tmp_path / "none.py"])
        list(found)  # Runs generators.
    assert log.read_text() == "ab"


TWO = {
    "own_layer.py": "from thinc.api import Model\nfrom thincdialog.api import registry\n"
    "from thincdialog.models.bag_encoder import BagEncoder\n\n"
    '@registry.models("tests.two_a.v1")\ndef a() -> Model:\n    return BagEncoder(width=8)\n',
    "own_mutator.py": "from thincdialog.api import registry\n\n"
    '@registry.mutators("tests.two_b.v1")\ndef b():\n    return lambda episode: [episode]\n',
}


@pytest.mark.slow
def test_code_of_several_files_reaches_the_processes_of_workers(tmp_path):
    paths = [write(tmp_path / name, text) for name, text in TWO.items()]
    text = RANKER.replace('"inline"', '"batch"').replace("width = 16\n", "")
    text = re.sub(r"(\[agent\.model\.encoder\]\n)(.+\n)+", r'\1@models = "tests.two_a.v1"\n', text)
    text += '\n[tasks.coffee.mutators.*.own]\n@mutators = "tests.two_b.v1"\n'
    workers = {"runner.@runners": "thincdialog.Hogwild.v1", "runner.executor": "process"}
    limits = {"training.max_steps": 2, "runner.workers": 2}
    result, _ = quietly_train(text, tmp_path / "out", code=paths, **workers, **limits)
    assert result.stopped_because == "max_steps = 2 reached"
