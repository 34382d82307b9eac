"""Checks of configs. tests/cli/mistakes.py contains the most common mistakes."""

import pytest
import thinc.api
from thinc.api import Linear, chain, with_padded

from tests.config.examples import GOOD, with_agent
from thincdialog.api import ConfigError, registry
from thincdialog.config import check_config, load_config, resolve_config


def only_problem(config, overrides=None):
    with pytest.raises(ConfigError) as caught:
        load_config(config, overrides)
    (problem,) = map(str, caught.value.problems)
    return problem


def changed(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def without(start):
    return "\n\n".join(part for part in GOOD.split("\n\n") if start not in part)


def layer(arguments, name="Picky", place="layer"):
    return f'[agent.{place}]\n@layers = "test_config.{name}.v1"\n{arguments}\n'


def with_layer(*arguments, **place):
    return with_agent(layer(*arguments, **place))


def group(n):
    return "".join(layer("width = 3", place=f"layer.*.{number}") for number in range(n))


IN_A_LIST = 'parts = [{"@layers": "test_config.Picky.v1", "width": 3}, 4]'


@pytest.mark.parametrize(
    "config",
    [
        GOOD, with_layer("width = 3\nrate = 1"),
        with_layer('width = 3\nnames = ["a"]\nweights = {"a b": 1.5}'),
        with_layer("width = 3\n[agent.layer.weights]\na = 1.5"), with_layer("", "Chain") + group(3),
        with_layer("", "Pair") + group(2), with_layer(IN_A_LIST, "Lists"),
    ],
)  # fmt: skip
def test_check_finds_nothing_wrong_with_a_good_config(config):
    assert check_config(config) == []


def test_a_missing_folder_is_one_problem_that_names_all_sections_with_it():
    block = '[agent.layer.*.%s]\n@models = "thincdialog.PretrainedTokens.v1"\nfolder = "away"\n'
    config = with_layer("", "Chain") + "".join(block % name for name in "abc")
    (problem,) = map(str, check_config(config))
    assert "  [agent.layer.*.a] thincdialog.PretrainedTokens.v1: away is not a folder" in problem
    assert "(also in [agent.layer.*.b], [agent.layer.*.c]) - see" in problem


@pytest.mark.parametrize(
    "old, new, words",
    [
        # unknown names
        ('@models = "thincdialog.BagEncoder.v1"', '@layers = "thincdialog.BagEncoder.v1"',
         "is not in 'layers'|it is in 'models': write @models = \"thincdialog.BagEnc"),
        ('@optimizers = "Adam.v1"', '@layers = "Linear.v1"',
         "[training.optimizer] is built by '@optimizers', got '@layers'"),
        # wrong types
        ("= 10\n\n", "= 10.5\n\n", "'max_steps' should be an integer, 0 or more, got 10.5"),
        ("= 10\n\n", "= null\n\n", "got null - Maximum number of optimizer steps"),
        ('"thincdialog.Words.v1"', "3", "'@tokenizers' should be a name, got 3"),
        # ranges
        ("max_steps = 10", 'score_direction = "up"', '"auto" or "max" or "min", got "up"'),
        ("max_steps = 10", "max_epochs = 0", "are all 0 - set one of them"),
        # A value that is unknown because of a missing variable is no second problem.
        ("max_steps = 10", "max_steps = ${paths.many}", "${paths.many}, which is not defined"),
        # missing parts
        ("warmup_steps = 2\n", "", "'warmup_steps' of warmup_linear.v1 is missing"),
        # The message is one line, whatever the name.
        ('"thincdialog.Words.v1"', r'"thincdialog.Wor\nds.v1"', "Wor ds.v1' is not in 'token"),
    ],
)  # fmt: skip
def test_check_names_the_line_the_problem_and_the_remedy(tmp_path, old, new, words):
    path = tmp_path / "my.cfg"
    text = changed(old, new)
    path.write_text(text)
    problem = only_problem(path)
    assert all(part in problem for part in words.split("|")) and "\n" not in problem
    pairs = zip(GOOD.split("\n"), text.split("\n"))
    different = next(n for n, (before, after) in enumerate(pairs, 1) if before != after)
    sections = [n for n, line in enumerate(text.split("\n")[:different], 1) if line[:1] == "["]
    # A missing setting is reported at its section, a wrong one at its own line.
    is_of_section = "missing" in problem or "all 0" in problem
    assert problem.startswith(f"{path}:{sections[-1] if is_of_section else different}  ")


@pytest.mark.parametrize(
    "config, words",
    [
        # arguments
        (with_layer(""), "'width' of test_config.Picky.v1 is missing|Units of the layer"),
        (with_layer('width = 3\nkind = "sof"'), 'should be "soft" or "hard", got "sof"'),
        (with_layer("width = 3\nnames = [1]"), "should be a list of strings or null, got [1]"),
        (with_layer('width = 3\nweights = {"a": "b"}'), "should be a section or null"),
        (with_layer("width = 3\ninner = 4"), "should be a block that builds a Model or null, got"),
        (with_layer("width = 3\ndeep = 1"), "should be true or false, got 1"),
        (with_layer('width = 3\n@models = "x"'), "holds both @layers and @models"),
        (with_layer("width = []"),
         "width (int): Units of the layer, 1 or more; at most 100. (|examples.py:"),
        # groups, lists and sections of blocks
        (with_layer("", "Pair") + group(3), "takes 2 positional blocks, got 3"),
        (with_layer("", "Pair") + group(1), "'second' of test_config.Pair.v1 is missing"),
        (with_layer("", "Chain") + group(2).replace("= 3", "= 3\nx = 1", 1),
         "[agent.layer.*.0] test_config.Picky.v1 has no argument 'x'"),
        (with_layer(IN_A_LIST.replace("width", "widht"), "Lists"),
         "has no argument 'widht' - did you mean 'width'?"),
        (with_layer("parts = []", "Lists") + layer("", "Pickle", "layer.options.a"),
         "[agent.layer.options.a] 'test_config.Pickle.v1' is not in 'layers'"),
        # sections
        (without("[agent"), "the section [agent] is missing - it begins with: @agents ="),
        (without("[tasks."), "section [tasks.NAME] is missing - it begins with: @teachers ="),
        (f"{GOOD}\n[tasks]\nx = 1\n", "[tasks] holds sections [tasks.NAME], not the setting 'x'"),
        (f"{GOOD}\n[evaluation]\nmetrics = 3\n", "[evaluation.metrics] should be a section, got 3"),
        (f'{GOOD}\n[training.callbacks.*.mine]\n@callbacks = "mine.v1"\n',
         "[training.callbacks] accepts names only, not '*' - write [training.callbacks.mine]"),
        (f'{GOOD}\n[evaluation.metrics.*.mine]\n@metrics = "thincdialog.Accuracy.v1"\n',
         "[evaluation.metrics] accepts names only, not '*' - write [evaluation.metrics.mine]"),
        (GOOD.replace("[paths]", "[paths]\nmore = 3"),
         "config:5  [paths] 'more' should be a string or null, got 3"),
        # Python
        ({"agent": {"@agents": "test_config.Talker.v1", "layer": object()},
          "tasks": {"a": {"@teachers": "thincdialog.Conversations.v1"}}},
         "[agent] 'layer' is a object - a config holds numbers"),
    ],
)  # fmt: skip
def test_check_finds_the_only_problem(config, words):
    problem = only_problem(config)
    assert all(part in problem for part in words.split("|"))


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("max_steps", "4",
             "'max_steps' is not a setting in a section - did you mean training.max_steps?"),
        ("training.max_steps.more", "4",
         "no section [training.max_steps] - 'max_steps' is a value, 10"),
        ("evaluation.batch_size", "4",
         "[evaluation] has no setting 'batch_size' - batches are set in [world.batcher], as "
         "its size or budget; for the evaluation alone, in [evaluation.world.batcher]"),
        ("agent.model.encoder.depth", "four",
         "[agent.model.encoder] 'depth' of thincdialog.BagEncoder.v1 should be|"
         "depth (int): Number of residual feed-forward nets|(thincdialog/models/bag_encoder.py:"),
    ],
)  # fmt: skip
def test_check_overrides(name, value, words):
    problem = only_problem(GOOD, {name: value})
    assert problem.startswith(f"--{name}  ")
    assert all(part in problem for part in words.split("|"))


def test_check_overrides_may_replace_a_whole_section():
    block = {"@runners": "thincdialog.Hogwild.v1", "workers": 3}
    assert load_config(GOOD, {"runner": block}).interpolated["runner"]["workers"] == 3
    assert "workers' of thincdialog.Hogwild.v1" in only_problem(
        GOOD, {"runner": {**block, "workers": "many"}}
    )


def test_check_overrides_may_set_some_keys_of_a_section():
    checked = load_config(GOOD, {"training": {"max_steps": 3}})
    assert checked.interpolated["training"]["max_steps"] == 3
    assert "optimizer" in checked.interpolated["training"]
    inner = {"model": {"encoder": {"width": 5}}}
    encoder = load_config(GOOD, {"agent": inner}).interpolated["agent"]["model"]["encoder"]
    assert encoder["width"] == 5 and "@models" in encoder
    # The order of overrides does not matter.
    block = {"@optimizers": "Adam.v1"}
    changes = {"training.optimizer.learn_rate": 0.5, "training": {"optimizer": block}}
    for names in (changes, reversed(changes)):
        checked = load_config(GOOD, {name: changes[name] for name in names})
        assert checked.interpolated["training"]["optimizer"]["learn_rate"] == 0.5
    problem = only_problem(GOOD, {"training": {"max_stepz": 3}})
    assert problem.startswith("--training.max_stepz  [training] has no setting 'max_stepz'")


@pytest.mark.parametrize("rate", ["[[1], [2]]", "[]", "[0.1, -1]"])
def test_check_lists_of_numbers(rate):
    optimizer = {"@optimizers": "thincdialog.SparseAdagrad.v1", "learn_rate": rate}
    changes = {f"training.optimizer.{key}": value for key, value in optimizer.items()}
    words = f"should be a list of one number or more, each 0 or more, got {rate}"
    assert words in only_problem(GOOD, changes)


def test_check_shows_all_problems_in_the_order_of_the_file():
    text = GOOD.replace("max_steps", "max_stepz").replace("min_freq", "min_frek")
    text = text.replace("${paths.train}", "${paths.x}").replace("width = 8", "width = 8 # narrow")
    text += "\n[agent]\n\n[nothing]\nx = .5\n"
    with pytest.raises(ConfigError) as caught:
        load_config(text, {"training.pacience": 3, "system.seed": "x"})
    error = caught.value
    numbers = [problem.where.rpartition(":")[2] for problem in error.problems]
    lines = [int(number) for number in numbers if number.isdigit()]
    assert lines == sorted(lines) and len(lines) == 7
    assert [p.where for p in error.problems[7:]] == ["--training.pacience", "--system.seed"]
    assert str(error).startswith("9 problems in config\n  config:")
    assert str(error).count("\n") == 9


def test_check_inside_blocks_of_unknown_functions():
    text = changed('"thincdialog.Ranker.v1"', '"thincdialog.Rancor.v1"')
    outer, inner = map(str, check_config(text.replace("width = 8", "widht = 8")))
    assert "did you mean 'thincdialog.Ranker.v1'?" in outer
    assert "did you mean 'width'?" in inner


def test_check_what_a_function_finds_wrong_has_the_line_of_its_argument():
    def found(settings, **overrides):
        block = f'[world.batcher]\n@batchers = "thincdialog.Words.v1"\n{settings}\n'
        (problem,) = map(str, check_config(GOOD + block, overrides))
        return problem

    line = GOOD.count("\n") + 3
    text = "[world.batcher] 'budget' of thincdialog.Words.v1 is"
    hint = "give whole numbers of at least 1"
    assert found("budget = 0") == f"config:{line}  {text} 0 - {hint}"
    many = found("budget = 7", **{"world.batcher.budget": 10**18})
    assert many == f"--world.batcher.budget  {text} {10**18} - {hint}, and at most {10**12:,}"
    # So has the error of a function that raises a ValueError.
    depth = found("budget = 1", **{"agent.model.encoder.depth": -1})
    assert depth.startswith("--agent.model.encoder.depth  [agent.model.encoder] thincdialog.BagE")
    assert "BagEncoder.v1: depth = -1, but it must be 0 to" in depth
    buffer = found("budget = 1\nbuffer = 0")
    assert buffer.startswith(f"config:{line + 1}  [world.batcher] 'buffer'")


LSTM = '@layers = "LSTM.v1"\nnO = 8\nnI = 8\n'


@registry.layers("test_check.WithLSTM.v1")
def build_with_lstm():
    return chain(Linear(8, 8), with_padded(thinc.api.LSTM(8, 8)))


@pytest.mark.parametrize(
    "block, place",
    [
        (f"[agent.layer]\n{LSTM}", ""),
        (f'[agent.layer]\n@layers = "with_padded.v1"\n\n[agent.layer.layer]\n{LSTM}', ".layer"),
        ('[agent.layer]\n@layers = "test_check.WithLSTM.v1"\n', ""),
    ],
)
def test_check_refuses_thincs_lstm_and_names_ours(block, place):
    config = with_agent(block)
    (problem,) = map(str, check_config(config))
    line = 2 + config.split("\n").index(f"[agent.layer{place}]")
    assert problem.startswith(f"config:{line}  [agent.layer{place}] Thinc's LSTM.v1 ")
    assert '@layers = "thincdialog.BiLSTM.v1"' in problem and "\n" not in problem
    with pytest.raises(ConfigError, match="BiLSTM"):
        resolve_config(load_config(config))
