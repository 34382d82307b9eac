"""Custom code that fails or returns something wrong: one line says where, in every command."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import catalogue
import pytest
import thinc

from tests.cli.conftest import run as run_fixture
from tests.processes import slow
from thincdialog.api import Agent, ExampleMetric, Message
from thincdialog.contract import CodeError, code_error_line, is_users, place_in, place_of
from thincdialog.messages import MessageBatch

run = run_fixture

# Python 3.10 does not know the class of a running method.
CLASS = r"Own\." if sys.version_info >= (3, 11) else ""

HEAD = """
import numpy as np
from thinc.api import Linear, Model, chain
from thinc.types import Ragged
from thincdialog.api import (
    Agent, Alone, Batcher, ExampleMetric, IterableTeacher, Learner, Message, Metric, Sizes,
    StepReport, Store, Teacher, registry,
)
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed


@registry.teachers("test_contract.Lights.v1")
def lights():
    rows = [("red light", "stop"), ("green light", "go"), ("amber", "wait")] * 10
    return IterableTeacher({"train": rows, "dev": rows})


@registry.layers("test_contract.Words.v1")
def words():
    return chain(TokenEmbed(8), pool("max"))


"""
PARTS = {
    "teachers": "test_contract.Lights.v1", "layers": "test_contract.Words.v1",
    "loggers": "thincdialog.Console.v1", "optimizers": "Adam.v1",
    "metrics": "thincdialog.F1.v1", "runners": "thincdialog.Alone.v1",
    "tokenizers": "thincdialog.Words.v1",
}  # fmt: skip
CONFIG = """
[tasks.lights]
@teachers = "{teachers}"

[tokenizer]
@tokenizers = "{tokenizers}"

{agent}
{world}
[evaluation.metrics.one]
@metrics = "{metrics}"

[evaluation.metrics.accuracy]
@metrics = "thincdialog.Accuracy.v1"

[training]
max_epochs = 1
score = "accuracy"
{callback}
[training.optimizer]
@optimizers = "{optimizers}"
{rate}
[training.logger]
@loggers = "{loggers}"

[runner]
@runners = "{runners}"
"""
AGENT = """[agent]
@agents = "thincdialog.Classifier.v1"
{loss}
[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@layers = "{layers}"
"""
OPTIONAL = {
    "losses": ("loss", '\n[agent.loss]\n@losses = "NAME"\n'),
    "callbacks": ("callback", '\n[training.callbacks.one]\n@callbacks = "NAME"\n'),
    "schedules": ("rate", '\n[training.optimizer.learn_rate]\n@schedules = "NAME"\n'),
    "batchers": ("world", '\n[world.batcher]\n@batchers = "NAME"\n'),
    "worlds": ("world", '\n[world]\n@worlds = "NAME"\n'),
}


def builds(registry, what, before=""):
    """Write code that registers a function whose return value is ``what``."""
    return registry, f'{before}\n\n@registry.{registry}("NAME")\ndef build():\n    return {what}\n'


def layer(forward, model="chain(TokenEmbed(8), Model('own', forward), pool('max'))"):
    head = "def forward(model, X, is_train):\n"
    return builds("layers", model, head + "".join(f"    {row}\n" for row in forward))


def store(starts="[0, 1, 2, 3]", cells="[str(row) for row in rows]"):
    text = f"""
class Own(Store):
    names = ("id", "text", "labels")
    starts = {starts}

    def cells(self, name, rows):
        found = {cells}
        return [[cell] for cell in found] if name == "labels" else found
"""
    return builds("teachers", 'Teacher({"train": Own(), "dev": Own()})', text)


def own(registry, base, method, value, more=""):
    """Write code of a class in which one method returns ``value``."""
    text = f"class Own({base}):\n    {more}\n    def {method}:\n        return {value}\n"
    made = "Own(Sizes(4), 4)" if base == "Batcher" else "Own()"
    return builds(registry, made, text)


LOSS = "def loss(Z, targets, weights):\n    return {}\n"
ANSWERS = 'def act(self):\n        return Message(text="go")\n'
LEARNS = (
    "def initialize(self, train, **options):\n        self.weights = np.zeros(3, dtype='f')\n"
    "    def learn(self, batch):\n        pass\n"
    "    def answer(self, batch):\n        return [Message(text='go')] * len(batch)\n"
)
NO_WEIGHTS = LEARNS.replace("self.weights = np.zeros(3, dtype='f')", "pass")


GROWS = "setattr(self, 'weights', np.zeros(7, dtype='f')) or StepReport(30)"


def world(methods):
    head = "from thincdialog.api import World\n\n\nclass Own(World):\n    def _parley(self):\n"
    return builds("worlds", "lambda *given: Own(given)", f"{head}        pass\n\n{methods}")


def tokenizer(methods):
    text = """
from thincdialog.api import Tokenizer


class Own(Tokenizer):
    needs_texts = False
    n_ids = 50

"""
    return builds("tokenizers", "Own()", text + methods)


def optimizer(value, given="key, weights, gradient"):
    head = "from thinc.api import Optimizer\n\n\nclass Own(Optimizer):\n"
    text = f"{head}    def __call__(self, {given}, **more):\n        return {value}\n"
    registry, code = builds("optimizers", "Own(learn_rate)", text)
    return registry, code.replace("def build():", "def build(learn_rate: float):")


# The registry and the code, what the line says, and whether `debug config` finds the error.
WRONG = {
    "layer None": (
        *builds("layers", "None"),
        r"build\(\) returned None, but should return a Model",
        1,
    ),
    "layer fails": (*builds("layers", "{}['a']"), r"KeyError: 'a' - code.py:\d+  in build\(\)", 1),
    "no pair": (
        *layer(["return X"]),
        r"forward\(\) returned a Ragged .* the pair \(Y, backprop\)",
        1,
    ),
    "forward None": (*layer(["pass"]), r"forward\(\) returned None, but should return the pair", 1),
    "forward fails": (*layer(["return X.none, 1"]), r"in forward\(\): AttributeError: 'Ragged'", 1),
    "backprop None": (
        *layer(["return X, lambda dY: None"]),
        r"<lambda>\(\) returned None, .* gradient of X",
        1,
    ),
    "doubles": (
        *layer(["X = X.data.astype('d')", "return X, lambda dY: dY"]),
        r"forward\(\) returned float64, but should return float32",
        1,
    ),
    "no sequences": (
        *layer(["return [1, 2], lambda dY: dY"]),
        r"cannot be set up to read text .* look at code.py:\d+  forward\(\);",
        1,
    ),
    "backprop fails": (*layer(["return X, lambda dY: 1 / 0"]), r"in <lambda>\(\): ZeroDivision", 1),
    "a row is lost": (
        *layer(
            ["more = len(X) > 1", "return X[:-1] if more else X, lambda dY: dY"],
            "chain(TokenEmbed(8), pool('max'), Model('own', forward))",
        ),
        r"forward\(\) returned \d+ rows for \d+ rows: a layer must keep all rows",
        1,
    ),
    "wrong arguments": (
        *builds(
            "layers",
            "chain(TokenEmbed(8), Model('own', f), pool('max'))",
            "def f(model, X):\n    pass",
        ),
        r"f\(\): TypeError: f\(\) got an unexpected keyword",
        1,
    ),
    "loss None": (
        *builds("losses", "loss", LOSS.format("None")),
        r"loss\(\) returned None, .* gradient",
        1,
    ),
    "loss is a mean": (
        *builds("losses", "loss", LOSS.format("Z * 0, 0.5")),
        r"a float \(0.5\)\), but should return .* one loss for each example",
        1,
    ),
    "loss fails": (
        *builds("losses", "loss", LOSS.format("Z.none")),
        r"in loss\(\): AttributeError",
        1,
    ),
    "teacher None": (*builds("teachers", "None"), r"build\(\) returned None, .* a Teacher", 1),
    "rows None": (
        *builds("teachers", 'IterableTeacher({"train": rows})', "def rows():\n    pass"),
        r"rows\(\) returned None, but should return an iterable of episodes",
        0,
    ),
    "rows fail": (
        *builds(
            "teachers",
            'Teacher({"train": rows})',
            "def rows():\n    raise ValueError(3)\n    yield",
        ),
        r"in rows\(\): ValueError: 3",
        0,
    ),
    "no messages": (
        *builds("teachers", 'Teacher({"train": rows})', 'def rows():\n    yield {"text": "a"}'),
        r"rows\(\) returned a dict .* episodes: lists of Messages",
        0,
    ),
    "starts": (
        *store(starts="[1, 2, 3]"),
        r"code.py:\d+  Own.starts is a list of 3 \(\[1, 2",
        1,
    ),
    "starts fall": (
        *store(starts="[0, 3, 2]"),
        r"Own.starts is a list .* in ascending order from 0",
        1,
    ),
    "no starts": (
        *store(starts="None\n    del starts"),
        r"code.py:\d+  Own has no 'starts'",
        1,
    ),
    "rows missing": (
        *store(cells="['a'] * (len(rows) - 1)"),
        r"Own.cells\(\) returned .* each row",
        0,
    ),
    "cells None": (
        *store(cells="None\n        return None"),
        r"Own.cells\(\) returned None, .* each",
        0,
    ),
    "batcher None": (*builds("batchers", "None"), r"build\(\) returned None, .* a Batcher", 1),
    "plan None": (
        *own("batchers", "Batcher", "plan(self, lengths, limit, rng)", None),
        r"Own.plan\(\) must return every row in exactly one batch",
        1,
    ),
    "world None": (
        *builds("worlds", "lambda teacher, agent: None"),
        r"returned None, .* a World",
        1,
    ),
    "metric None": (*builds("metrics", "None"), r"returned None, .* an ExampleMetric", 1),
    "report of floats": (
        *own(
            "metrics",
            "ExampleMetric",
            "report(self)",
            '{"m": 0.5}',
            "add = reset = lambda *a: None",
        ),
        r"Own.report\(\) returned a dict \({'m': 0.5}\), but should return metrics by their names",
        1,
    ),
    "agent None": (*builds("agents", "None"), r"build\(\) returned None, .* an Agent", 1),
    "act a string": (
        *own("agents", "Agent", "act(self)", "'hello'"),
        r"Own.act\(\) returned a str \('hello'\), but should return a Message",
        1,
    ),
    "act fails": (
        *own("agents", "Agent", "act(self)", "[][0]"),
        rf"in {CLASS}act\(\): IndexError",
        0,
    ),
    "act slips": (
        *own("agents", "Agent", "act(self)", "self.no"),
        rf"in {CLASS}act\(\): Attribute",
        1,
    ),
    "batch_act": (
        *own("agents", "Agent", "batch_act(self, observations)", "[Message()]"),
        r"Own.batch_act\(\) returned a list of 1 .* one for each observation",
        1,
    ),
    "agent's report": (
        *own("agents", "Agent", "report(self)", "{'x': 1.0}", ANSWERS),
        r"Own.report\(\) returned a dict",
        1,
    ),
    "reachable": (
        *own("agents", "Agent", "reachable(self, example)", "'yes'", ANSWERS),
        r"Own.reachable\(\) returned a str \('yes'\), but should return None, or texts",
        1,
    ),
    "update": (
        *own("agents", "Learner", "update(self, optimizer)", "0.5", LEARNS),
        r"Own.update\(\) returned a float \(0.5\), but should return a StepReport",
        1,
    ),
    "no answer": (
        *own(
            "agents",
            "Learner",
            "update(self, optimizer)",
            "StepReport(3)",
            LEARNS.partition("    def answer")[0],
        ),
        r"code.py:\d+  Own has no answer\(\): NotImplementedError",
        1,
    ),
    "schedule None": (*builds("schedules", "None"), r"build\(\) returned None, .* a schedule", 1),
    "schedule of texts": (
        *builds("schedules", "rates()", "def rates():\n    yield 0.1\n    yield 'b'"),
        r"build\(\) returned a str \('b'\), .* numbers",
        1,
    ),
    "logger None": (*builds("loggers", "None"), r"build\(\) returned None, .* a function", 1),
    "setup None": (
        *builds("loggers", "lambda *given: None"),
        r"<lambda>\(\) returned None, .* \(log_step, fin",
        0,
    ),
    "callback None": (*builds("callbacks", "None"), r"build\(\) returned None, .* a function", 1),
    "callback fails": (
        *builds("callbacks", "lambda info, agent: info['x']"),
        r"in <lambda>\(\): KeyError: 'x'",
        0,
    ),
    "callback's answer": (
        *builds("callbacks", "lambda info, agent: 'no'"),
        r"<lambda>\(\) returned a str \('no'\), .* True to end training",
        0,
    ),
    "setup fails": (
        *builds("loggers", "setup", "def setup(run, *streams):\n    raise KeyError('x')\n"),
        r"in setup\(\): KeyError: 'x'",
        0,
    ),
    "loss's arguments": (
        *builds("losses", "lambda Z: Z"),
        r"<lambda>\(\): TypeError: .* takes 1 positional argument but 3 were given",
        1,
    ),
    "loss is a class": (
        *builds("losses", "Loss", "class Loss:\n    pass\n"),
        r"\d  Loss: TypeError: Loss\(\) takes no arguments",
        1,
    ),
    "loss of doubles": (
        *builds("losses", "loss", LOSS.format("Z.astype('d'), Z[:, 0]")),
        r"loss\(\) returned a tuple of 2 .*, but should return a gradient .* in float32",
        1,
    ),
    "no forward": (
        *builds("layers", "chain(TokenEmbed(8), pool('max'), Model('own', None))"),
        r"build\(\) returned None as the forward of 'own', expected a function",
        1,
    ),
    "scores of another shape": (
        *layer(
            ["return np.ones((2, 9), 'f'), lambda dY: X"],
            "chain(TokenEmbed(8), pool('max'), Model('own', forward))",
        ),
        r"look at code.py:\d+  forward\(\)|forward\(\) returned .* keep all rows",
        1,
    ),
    "a param is a list": (
        *builds(
            "layers",
            "chain(TokenEmbed(8), pool('max'), Model('own', f, init=init, params={'W': None}))",
            "def f(model, X, is_train):\n    return X, lambda dY: dY\n\n\n"
            "def init(model, X=None, Y=None):\n    model.set_param('W', [1])\n",
        ),
        r"parameter 'W' of layer 'own' is a list of 1 \(\[1\]\), .* \(code.py:\d+  f\(\)\)",
        0,
    ),
    "schedule in a map": (
        *builds("schedules", "map(str, range(9))"),
        r"build\(\) returned a str \('0'\), .* numbers",
        1,
    ),
    "empty schedule": (
        *builds("schedules", "iter(())"),
        r"build\(\) returned a schedule that yields no number",
        1,
    ),
    "a text is a number": (
        *own("agents", "Agent", "act(self)", "Message(text=5)"),
        r"Own.act\(\) returned a Message \({'text': 5}\), .* \(text: a string;",
        1,
    ),
    "a heard text is a number": (
        *own("agents", "Agent", "observe(self, message)", "Message(text=5)", ANSWERS),
        r"Own.observe\(\) returned a Message \({'text': 5}\), .* \(text: a string;",
        1,
    ),
    "a row's text is a number": (
        *builds("teachers", 'IterableTeacher({"train": [Message(text=5, labels=["a"])]})'),
        r"has a number as 'text': expected a string \(code.py:\d+  in build\(\)\)",
        0,
    ),
    "an episode's text is a number": (
        *builds(
            "teachers", 'Teacher({"train": f})', "def f():\n    yield [Message(text=5, labels=[])]"
        ),
        r"f\(\) returned a list of 1 \(\[{'text': 5, .* \(text: a string;",
        0,
    ),
    "no source": (
        *builds("teachers", 'Teacher({"train": None})'),
        r"the split 'train' is None .* \(code.py:\d+  in build\(\)\)",
        1,
    ),
    "weights": (
        *own(
            "agents",
            "Learner",
            "update(self, optimizer)",
            "StepReport(3)",
            LEARNS.replace("np.zeros(3, dtype='f')", "[0.0]"),
        ),
        r"Own.weights is a list of 1 \(\[0.0\]\), but should be one float32 vector",
        1,
    ),
    "no weights": (
        *own("agents", "Learner", "update(self, optimizer)", "StepReport(3)", NO_WEIGHTS),
        r"Own has no 'weights': give it one float32 vector",
        1,
    ),
    "a loss of nan": (
        *own("agents", "Learner", "update(self, optimizer)", "StepReport(3, np.nan, 3)", LEARNS),
        r"Own.update\(\): the loss of step 1 is nan",
        0,
    ),
    "ids": (
        *tokenizer("    def encode(self, text):\n        return np.array([70])\n"),
        r"Own.encode\(\) returned a ndarray of shape \(1,\), int64: \[70\] for .* 0 to 49",
        1,
    ),
    "no encode": (*tokenizer(""), r"code.py:\d+  Own has no encode\(\): NotImpl", 1),
    "number of ids": (
        *tokenizer("    n_ids = None\n"),
        r"Own.n_ids is None, but should be a whole number",
        1,
    ),
    "a static act": (
        *own("agents", "Agent", "act()", "5", "@staticmethod"),
        r"Own.act\(\) returned an int \(5\)",
        1,
    ),
    "act exits": (
        *own("agents", "Agent", "act(self)", "__import__('sys').exit(3)"),
        rf"in {CLASS}act\(\): SystemExit: 3",
        1,
    ),
    "an error that cannot tell": (
        *builds(
            "agents",
            "Own()",
            "class E(Exception):\n    def __str__(self):\n        return 5\n\n\n"
            "class Own(Agent):\n    def act(self):\n        raise E()\n",
        ),
        rf"in {CLASS}act\(\): E$",
        0,
    ),
    "other weights": (
        *own("agents", "Learner", "update(self, optimizer)", GROWS, LEARNS),
        r"Own.update\(\) changed the number of weights from 3 to 7",
        1,
    ),
    "fewer than no examples": (
        *own("agents", "Learner", "update(self, optimizer)", "StepReport(-1)", LEARNS),
        r"Own.update\(\) returned a StepReport .* examples 0 or more",
        1,
    ),
    "add yields": (
        *own(
            "metrics",
            "ExampleMetric",
            "add(self, labels, reply)",
            "(yield)",
            "report = lambda self: {}\n    reset = lambda self: None",
        ),
        r"Own.add\(\) returned a generator .* not yield",
        1,
    ),
    "Thinc's layers refuse it": (
        *layer(["return Ragged(X.data[:, :3], X.lengths), lambda dY: X"]),
        r"not C-contiguous: look at code.py:\d+  forward\(\)",
        1,
    ),
    "a world that does not know": (
        *world("    def _epoch_done(self):\n        pass\n"),
        r"Own._epoch_done\(\) returned None, but should return True or False",
        1,
    ),
    "half a world": (*world(""), r"code.py:\d+  Own has no _epoch_done\(\): NotImplemented", 1),
    "runner yields": (
        *builds("runners", "Own()", "class Own(Alone):\n    def take(self, *g):\n        yield\n"),
        r"Own.take\(\) returned a generator",
        0,
    ),
    "runner is never done": (
        *own("runners", "Alone", "epoch_done(self)", "None"),
        r"Own.epoch_done\(\) returned None, but should return True or False",
        0,
    ),
    "runner measures nothing": (
        *own("runners", "Alone", "evaluate(self, *given)", "None"),
        r"Own.evaluate\(\) returned None, but should return numbers",
        0,
    ),
    "runner": (
        *own("runners", "Alone", "take(self, *given)", None),
        r"Own.take\(\) returned None",
        0,
    ),
    "act is a string": (
        *builds("agents", "Own()", "class Own(Agent):\n    act = 'hello'\n"),
        r"Own.act is a str \('hello'\), but should be a method",
        1,
    ),
    "act is a property": (
        *builds("agents", "Own()", "class Own(Agent):\n    act = property(lambda self: 'a')\n"),
        r"Own.act is a property, but should be a method",
        1,
    ),
    "batch_act of an object": (
        *builds(
            "agents",
            "Own()",
            "class Own(Agent):\n    def __init__(self):\n        self.batch_act = ['a']\n",
        ),
        r"Own.batch_act is a list of 1 \(\['a'\]\), but should be a method",
        1,
    ),
    "act of an object": (
        *builds(
            "agents",
            "Own()",
            "class Own(Agent):\n    def __init__(self):\n        self.act = lambda: 'hello'\n",
        ),
        r"<lambda>\(\) returned a str \('hello'\), but should return a Message",
        1,
    ),
    "weights nan": (
        *own(
            "agents",
            "Learner",
            "update(self, optimizer)",
            "self.weights.fill(np.nan) or StepReport(30)",
            LEARNS,
        ),
        r"Own.update\(\): after step 1, the weights are not finite: try a lower learn_rate",
        0,
    ),
    "optimizer None": (
        *optimizer("None"),
        r"Own.__call__\(\) returned None, but should return the pair \(weights, gradient\)",
        1,
    ),
    "optimizer loses a weight": (
        *optimizer("weights[1:], gradient"),
        r"Own.__call__\(\) returned a tuple of 2 \(a ndarray of shape .* in the shapes",
        1,
    ),
    "optimizer nan": (
        *optimizer("weights * np.nan, gradient"),
        r"returned a tuple of 2 \(a ndarray of shape \(\d+,\), float32, not finite; ",
        1,
    ),
    "optimizer takes too little": (
        *optimizer("weights, gradient", "key, weights"),
        r"Own.__call__\(\): TypeError: .* takes 3 positional arguments but 4 were given",
        1,
    ),
    "store without ids": (
        *store(cells="[None if name == 'id' else 'a' for row in rows]"),
        r"Own.cells\(\) returned a list of \d+ .* text and id are strings",
        0,
    ),
    "tokenizer None": (
        *builds("tokenizers", "None"),
        r"build\(\) returned None, .* a Tokenizer",
        1,
    ),
}


def write(folder, registry, code):
    """Write the config and the code of a case."""
    name = f"test_contract.{folder.name}.v1"
    parts = {**PARTS, "loss": "", "callback": "", "rate": "learn_rate = 0.01", "world": ""}
    agent = AGENT
    if registry == "agents":
        agent = f'[agent]\n@agents = "{name}"\n'
    elif registry in OPTIONAL:
        key, text = OPTIONAL[registry]
        parts[key] = text.replace("NAME", name)
    else:
        parts[registry] = name
    (folder / "code.py").write_text(HEAD + code.replace("NAME", name))
    (folder / "my.cfg").write_text(CONFIG.format(agent=agent.format(**parts), **parts))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINCDIALOG_TRACEBACK", raising=False)
    for name in PARTS.values():  # Each code file registers these two again.
        if name.startswith("test_contract."):
            forget(name)
    return tmp_path


def forget(name):
    for path in [path for path in catalogue.REGISTRY if path[-1] == name]:
        del catalogue.REGISTRY[path]


@pytest.mark.parametrize("case", WRONG)
def test_wrong_code_is_reported_in_one_line_that_says_where(run, folder, case):
    registry, code, said, is_found = WRONG[case]
    write(folder, registry, code)
    commands = ["debug config"] * is_found + ["train"]
    for command in commands:
        exit_code, _, err = run(f"{command} my.cfg --code code.py")
        found = [line for line in err.splitlines() if re.search(said, line)]
        assert exit_code == 1 and len(found) == 1, err
        assert re.search(r"\bcode\.py:\d+  ", found[0]) and "Traceback" not in err
    if not is_found:
        assert run("debug config my.cfg --code code.py")[0::2] == (
            0,
            "✔ my.cfg: no problems found\n",
        )


NOT_FINITE = {
    "loss": builds("losses", "loss", LOSS.format("Z, Z[:, 0] * np.float32('nan')")),
    "forward": layer(["return Ragged(X.data / np.float32(0), X.lengths), lambda dY: dY"]),
    "backprop": layer(["return X, lambda dY: Ragged(dY.data / np.float32(0), dY.lengths)"]),
}


@pytest.mark.parametrize("case", NOT_FINITE)
def test_numbers_that_are_not_finite_name_the_examples(run, folder, case):
    write(folder, *NOT_FINITE[case])
    exit_code, _, err = run("train my.cfg --code code.py")
    what = "gradient" if case == "backprop" else "loss"
    said = rf"The {what} is not finite; training stopped\. Examples of the batch: \w+/\d+, "
    assert exit_code == 1 and re.search(said, err) and "Traceback" not in err
    assert run("debug config my.cfg --code code.py")[0] == 0


@pytest.mark.parametrize(
    "body, said",
    [
        ("pass", "returned None"),
        ("return ops.alloc2f(3, 3)", r"returned a ndarray of shape \(3, 3\), float32"),
        ("return ops.alloc2f(*shape) + np.inf", "of numbers .float32. that are finite"),
        ("return 1 / 0", "ZeroDivisionError"),
    ],
)
def test_an_initializer_must_return_the_requested_array(run, folder, body, said):
    code = f"""
def init(ops, shape):
    {body}


@registry.initializers("NAME")
def first():
    return init


@registry.layers("NAME")
def build(init):
    return chain(TokenEmbed(8, init_E=init), pool("max"))
"""
    write(folder, "layers", code)
    name = f"test_contract.{folder.name}.v1"
    option = f"--agent.model.encoder.init.@initializers {name}"
    for command in ("debug config", "train"):
        exit_code, _, err = run(f"{command} my.cfg --code code.py {option}")
        told = [line for line in err.splitlines() if re.search(rf"code.py:\d+  .*{said}", line)]
        assert exit_code == 1 and len(told) == 1 and "Traceback" not in err


def test_right_code_is_left_alone(run, folder):
    write(folder, "layers", layer(["return X, lambda dY: dY"])[1])
    for command in ("debug config", "train"):
        assert run(f"{command} my.cfg --code code.py")[0] == 0


def test_a_metric_that_is_nan_is_reported_once_and_is_no_score(run, folder):
    given = "{'m': AverageMetric(float('nan'), 3)}"
    more = "add = reset = lambda *given: None"
    registry, code = own("metrics", "ExampleMetric", "report(self)", given, more)
    write(folder, registry, f"from thincdialog.api import AverageMetric\n\n\n{code}")
    exit_code, _, err = run("train my.cfg --no-output --code code.py")
    told = r"dev: the metric 'm' \(code.py:\d+  Own.report\(\)\) is nan\."
    assert exit_code == 0 and len(re.findall(told, err)) == 1
    score = "--training.score m --training.score_direction max"
    exit_code, _, err = run(f"train my.cfg --no-output --code code.py {score}")
    said = r"✘ \[training\] score = 'm' \(code.py:\d+  Own.report\(\)\) is nan on the dev data"
    assert exit_code == 1 and re.search(said, err)


def test_traceback_shows_all_of_it(run, folder, monkeypatch):
    write(folder, *WRONG["backprop fails"][:2])
    for option in ("--traceback", ""):
        exit_code, _, err = run(f"train my.cfg --no-output --code code.py {option}")
        assert exit_code == 1 and "Traceback" in err and "model_agent.py" in err
        assert "✘ code.py:" in err
        monkeypatch.setenv("THINCDIALOG_TRACEBACK", "1")


def test_a_logger_that_fails_later_is_reported_with_its_line(run, folder):
    code = "def setup(run, *streams):\n    return (lambda info: info.x), print\n"
    write(folder, *builds("loggers", "setup", code))
    exit_code, _, err = run("train my.cfg --no-output --code code.py")
    said = r"has failed \(code.py:\d+  in <lambda>\(\): AttributeError: .*\)\. Training continues"
    assert exit_code == 0 and len(re.findall(said, err)) == 1


def test_a_logger_that_would_never_run_is_reported(run, folder):
    code = "def step(info):\n    yield 1\n"
    write(folder, *builds("loggers", "lambda *given: (step, print)", code))
    said = r"code.py:\d+  step\(\) returned a generator .* nothing, and not yield"
    exit_code, _, err = run("train my.cfg --no-output --code code.py")
    assert exit_code == 0 and len(re.findall(rf"has failed \({said}\)\. Training", err)) == 1


@pytest.mark.parametrize("executor", ["thread", slow("process")])
def test_workers_report_the_line_of_an_error(run, folder, executor):
    write(folder, *WRONG["loss fails"][:2])
    runner = f"--runner.@runners thincdialog.Hogwild.v1 --runner.executor {executor}"
    exit_code, _, err = run(f"train my.cfg --no-output --code code.py {runner} --runner.workers 2")
    assert exit_code == 1 and "Traceback" not in err
    assert re.search(r"✘ Worker \d: code.py:\d+  in loss\(\): AttributeError", err)


def test_our_code_is_no_custom_code():
    assert not is_users(Agent.act) and not is_users(re.compile) and not is_users(pytest.raises)
    assert is_users(test_our_code_is_no_custom_code)


@pytest.mark.slow
def test_code_installed_next_to_thinc_is_no_custom_code(tmp_path):
    # As with "pip install --target".
    (tmp_path / "thinc").symlink_to(Path(thinc.__file__).parent)
    script = "from thinc.layers.chain import forward; from thincdialog.contract import is_users; "
    script += "print(forward.__code__.co_filename, is_users(forward))"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout.split() == [str(tmp_path / "thinc" / "layers" / "chain.py"), "False"]


def test_places_are_the_innermost_lines_of_custom_code():
    class Metric(ExampleMetric):
        def add(self, labels, reply):
            return reply["none"]

        def reset(self):
            pass

    with pytest.raises(KeyError) as caught:
        Metric().add_batch([["a"]], [Message()])
    line = inspect.unwrap(Metric.add).__code__.co_firstlineno
    assert place_of(Metric.add) == f"tests/test_contract.py:{line}  Metric.add()"
    place = f"tests/test_contract.py:{line + 1}  in "
    assert place_in(caught.value).startswith(place)
    assert code_error_line(caught.value).endswith("add(): KeyError: 'none'")
    # This error was never in custom code.
    assert place_in(ValueError("none")) == ""


def test_methods_of_custom_code_are_checked_at_every_call():
    class Fickle(Agent):
        replies = [Message(text="a"), {"text": "b"}, "c"]

        def act(self):
            return self.replies.pop(0)

    agent = Fickle()
    assert [agent.act()["text"], agent.act()["text"]] == ["a", "b"]
    with pytest.raises(CodeError, match=r"test_contract.py:\d+  Fickle.act\(\) returned a str"):
        agent.act()


def test_methods_that_come_from_a_mixin_are_checked_too():
    class Forgets:
        def batch_act(self, observations):
            return [Message(text="a") for _ in observations[1:]]

        def batch_lengths(self, observations):
            return [1 for _ in observations]

    class Mixed(Forgets, Agent):
        pass

    heard = [Message(text="a"), Message(text="b")]
    with pytest.raises(CodeError, match=r"Forgets.batch_act\(\) returned a list of 1 "):
        Mixed().batch_act(heard)
    with pytest.raises(CodeError, match=r"Forgets.batch_lengths\(\) returned .* Lengths"):
        Mixed().batch_lengths(heard)
    assert len(Forgets().batch_act(heard)) == 1  # The mixin itself is left alone.


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"text": ["milk", 3]}, r"MessageBatch\({'text': \['milk', 3\]}, 2\)"),
        ({"text": ["milk"]}, r"MessageBatch\({'text': \['milk'\]}, 2\)"),
        ({"text_candidates": [["milk"], "tea"]}, r"{'text_candidates': \[\['milk'\], 'tea'\]"),
    ],
)
def test_replies_in_columns_are_checked_column_by_column(columns, said):
    class Columnar(Agent):
        def batch_act(self, observations):
            return MessageBatch(columns, len(observations))

    class Good(Agent):
        def batch_act(self, observations):
            return MessageBatch({"text": lambda: ["milk", None], "loss": "ab"}, len(observations))

    heard = [Message(text="a"), Message(text="b")]
    assert list(Good().batch_act(heard)) == [{"text": "milk", "loss": "a"}, {"loss": "b"}]
    with pytest.raises(CodeError, match=rf"Columnar.batch_act\(\) returned a .*{said}"):
        Columnar().batch_act(heard)
