import pytest

from tests.config.examples import GOOD, with_agent
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config

PICKY = '[agent.layer]\n@layers = "test_config.Picky.v1"\n'
PAIR, CHAIN, LISTS = (PICKY.replace("Picky", name) for name in ("Pair", "Chain", "Lists"))


def only_problem(config, **overrides):
    with pytest.raises(ConfigError) as caught:
        load_config(config, overrides)
    (problem,) = map(str, caught.value.problems)
    return problem


def line_number(text, start):
    return next(n for n, line in enumerate(text.split("\n"), 1) if line.startswith(start))


def changed(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_check_finds_nothing_wrong_with_a_good_config():
    assert check_config(GOOD) == []


@pytest.mark.parametrize(
    "old, new, words",
    [
        # unknown names
        ("max_steps", "max_stepz", "[training] has no setting 'max_stepz'|'max_steps'?"),
        ("[tokenizer]", "[tokenise]", "there is no section [tokenise]|'tokenizer'?"),
        ("min_freq", "min_frequency",
         "[tokenizer] thincdialog.Words.v1 has no argument 'min_frequency'|'min_freq'?"),
        ('"thincdialog.Words.v1"', '"thincdialog.Word.v1"',
         "'thincdialog.Word.v1' is not in 'tokenizers'|'thincdialog.Words.v1'?"),
        ('@models = "thincdialog.BagEncoder.v1"', '@layers = "thincdialog.BagEncoder.v1"',
         "is not in 'layers'|it is in 'models': write @models = \"thincdialog.BagEnc"),
        ("@tokenizers", "@tokenizer", "there is no registry '@tokenizer'|'@tokenizers'?"),
        ("@mutators", "@mutator", "there is no registry '@mutator'|'@mutators'?"),
        ('@optimizers = "Adam.v1"', '@layers = "Linear.v1"',
         "[training.optimizer] is built by '@optimizers', got '@layers'"),
        ("${paths.train}", "${paths.trian}", "${paths.trian}, which is not|${paths.train}?"),
        # wrong types
        ("= 10\n\n", '= "10"\n\n', 'should be an integer|got "10" - write it without quotes'),
        ("= 10\n\n", "= 10.5\n\n", "'max_steps' should be an integer, 0 or more, got 10.5"),
        ("= 10\n\n", "= true\n\n", "'max_steps' should be an integer|got true"),
        ("= 10\n\n", "= null\n\n", "got null - Stop after so many steps of the optimizer"),
        ("min_freq = 2", "min_freq = two", "'min_freq' of thincdialog.Words.v1 should be an int"),
        ("width = 8", 'width = "8"', "'width' of thincdialog.BagEncoder.v1|without quotes"),
        ("use_averages = true", "use_averages = yes",
         "'use_averages' of Adam.v1 should be true or false|write true or false"),
        ('"thincdialog.Words.v1"', "3", "'@tokenizers' should be a name, got 3"),
        # ranges
        ("max_steps = 10", "max_steps = -10", "'max_steps' should be an integer, 0 or more"),
        ("max_steps = 10", "accumulate_gradient = 0", "1 or more, got 0"),
        ("max_steps = 10", 'score_direction = "up"', '"auto" or "max" or "min", got "up"'),
        ("max_steps = 10", "max_epochs = 0", "are all 0 - set one of them"),
        ("width = 8", "width = 0", "'width' of thincdialog.BagEncoder.v1 should be 1 or more"),
        # missing parts
        ('@tokenizers = "thincdialog.Words.v1"\n', "", "[tokenizer] does not say what builds it"),
        ("warmup_steps = 2\n", "", "'warmup_steps' of warmup_linear.v1 is missing"),
        ("max_steps = 10", "optimizers = 3", "has no setting 'optimizers' - did you mean"),
    ],
)  # fmt: skip
def test_check_names_the_line_the_problem_and_the_remedy(tmp_path, old, new, words):
    path = tmp_path / "my.cfg"
    text = changed(old, new)
    path.write_text(text)
    problem = only_problem(path)
    assert all(part in problem for part in words.split("|"))
    pairs = zip(GOOD.split("\n"), text.split("\n"))
    different = next(n for n, (before, after) in enumerate(pairs, 1) if before != after)
    sections = [n for n, line in enumerate(text.split("\n")[:different], 1) if line[:1] == "["]
    # What is missing is reported at its section; what is wrong, where it stands.
    is_of_section = "missing" in problem or "all 0" in problem or "not say" in problem
    assert problem.startswith(f"{path}:{sections[-1] if is_of_section else different}  ")


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


def test_check_shows_values_that_functions_refuse_beside_the_rest():
    text = with_agent(f"{PICKY}width = 3\nrate = 2.0\n") + "\n[training]\nmax_stepz = 3\n"
    refused, unknown = map(str, check_config(text))
    assert "[agent.layer] test_config.Picky.v1: rate = 2.0, expected 0.0 to 1.0" in refused
    assert refused.startswith(f"config:{line_number(text, '[agent.layer]')}  ")
    assert "max_stepz" in unknown


def test_check_quotes_the_documentation_of_an_argument():
    problem = only_problem(with_agent(f"{PICKY}width = []\n"))
    assert "width (int): Units of the layer, 1 or more; at most 100. (" in problem
    assert "examples.py:" in problem
    problem = only_problem(GOOD, **{"agent.model.encoder.depth": "four"})
    assert problem.startswith("--agent.model.encoder.depth  [agent.model.encoder] 'depth' of thinc")
    assert "depth (int): Residual feed-forward nets" in problem
    assert "(thincdialog/models/bag_encoder.py:" in problem


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("", "'width' of test_config.Picky.v1 is missing|Units of the layer"),
        ('width = 3\nkind = "sof"', 'should be "soft" or "hard", got "sof"'),
        ('width = 3\nnames = "one"', "should be a list of strings or null"),
        ("width = 3\nnames = [1]", "should be a list of strings or null, got [1]"),
        ('width = 3\nweights = {"a": "b"}', "should be a section or null"),
        ("width = 3\ninner = 4", "should be a block that builds a Model or null, got 4"),
        ("width = 3\ndeep = 1", "should be true or false, got 1"),
        ("width = 3\nwidht = 4", "has no argument 'widht' - did you mean 'width'?"),
        ('width = 3\n@models = "x"', "holds both @layers and @models"),
    ],
)
def test_check_arguments(arguments, words):
    problem = only_problem(with_agent(f"{PICKY}{arguments}\n"))
    assert all(part in problem for part in words.split("|"))


@pytest.mark.parametrize(
    "arguments",
    ["rate = 1", 'names = ["a"]\nweights = {"a b": 1.5}', "[agent.layer.weights]\na = 1.5"],
)
def test_check_accepts(arguments):
    assert check_config(with_agent(f"{PICKY}width = 3\n{arguments}\n")) == []


def test_check_positional_groups():
    one, two, three = (
        "".join(f"{PICKY.replace('layer]', f'layer.*.{n}]')}width = 3\n" for n in range(many))
        for many in (1, 2, 3)
    )
    assert check_config(with_agent(CHAIN + three)) == check_config(with_agent(PAIR + two)) == []
    assert "takes 2 positional blocks, got 3" in only_problem(with_agent(PAIR + three))
    assert "'second' of test_config.Pair.v1 is missing" in only_problem(with_agent(PAIR + one))
    problem = only_problem(with_agent(CHAIN + two.replace("width = 3", "width = 3\nx = 1", 1)))
    assert "[agent.layer.*.0] test_config.Picky.v1 has no argument 'x'" in problem


def test_check_blocks_in_lists_and_sections():
    good = f'{LISTS}parts = [{{"@layers": "test_config.Picky.v1", "width": 3}}, 4]\n'
    assert check_config(with_agent(good)) == []
    problem = only_problem(with_agent(good.replace("width", "widht")))
    assert "has no argument 'widht' - did you mean 'width'?" in problem
    text = 'parts = []\n[agent.layer.options.a]\n@layers = "test_config.Pickle.v1"\n'
    problem = only_problem(with_agent(LISTS + text))
    assert "[agent.layer.options.a] 'test_config.Pickle.v1' is not in 'layers'" in problem


def test_check_inside_blocks_of_unknown_functions():
    text = changed('"thincdialog.Ranker.v1"', '"thincdialog.Rancor.v1"')
    outer, inner = map(str, check_config(text.replace("width = 8", "widht = 8")))
    assert "did you mean 'thincdialog.Ranker.v1'?" in outer
    assert "did you mean 'width'?" in inner


@pytest.mark.parametrize(
    "remove, words",
    [
        ("[agent]", "the section [agent] is missing - it begins with: @agents ="),
        ("[tasks.dialogue]", "the section [tasks.NAME] is missing - it begins with: @teachers ="),
    ],
)
def test_check_missing_sections(remove, words):
    keep = [part for part in GOOD.split("\n\n") if remove[:-1] not in part]
    assert words in only_problem("\n\n".join(keep))


@pytest.mark.parametrize(
    "added, words",
    [
        ("[tasks]\nx = 1", "[tasks] holds sections [tasks.NAME], not the setting 'x'"),
        ("[evaluation]\nmetrics = 3", "[evaluation.metrics] should be a section, got 3"),
        ('[training.callbacks.*.mine]\n@callbacks = "mine.v1"',
         "[training.callbacks] takes no '*', only names - write [training.callbacks.mine]"),
        ('[evaluation.metrics.*.mine]\n@metrics = "thincdialog.Accuracy.v1"',
         "[evaluation.metrics] takes no '*', only names - write [evaluation.metrics.mine]"),
    ],
)  # fmt: skip
def test_check_what_does_not_belong_there(added, words):
    assert words in only_problem(f"{GOOD}\n{added}\n")


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("training.max_stepz", "4", "[training] has no setting 'max_stepz' - did you mean 'max_st"),
        ("trainin.max_steps", "4", "has no section [trainin] - did you mean --training.max_steps?"),
        ("training.optimiser.L2", "4", "no section [training.optimiser] - did you mean --training"),
        ("max_steps", "4", "'max_steps' is no setting of a section - name its section too"),
        ("training.max_steps", "abc", 'should be an integer, 0 or more, got "abc"'),
        ("training.max_steps.more", "4",
         "no section [training.max_steps] - 'max_steps' is a value, 10"),
        ("evaluation.batch_size", "4",
         "[evaluation] has no setting 'batch_size' - batches are set in [world.batcher], as "
         "its size or budget; for the evaluation alone, in [evaluation.world.batcher]"),
        ("training.batch_size", "4", "batches are set in [world.batcher]"),
        ("paths.tran", "x", "the config uses '${paths.tran}' nowhere - did you mean 'train'?"),
        ("paths.dev", "x", "the config uses '${paths.dev}' nowhere"),
        ("system.seed", "${paths.none}", "${paths.none}, which is not defined"),
        ("tokenizer.@tokenizers", "thincdialog.Words.v2", "did you mean 'thincdialog.Words.v1'?"),
    ],
)  # fmt: skip
def test_check_overrides(name, value, words):
    problem = only_problem(GOOD, **{name: value})
    assert problem.startswith(f"--{name}  ")
    assert words in problem


def test_check_value_of_unknown_variable_is_no_second_problem():
    assert "${paths.many}" in only_problem(changed("max_steps = 10", "max_steps = ${paths.many}"))


def test_check_lists_of_numbers():
    for rate in ("[[1], [2]]", "[]", "[0.1, -1]"):
        optimizer = {"@optimizers": "thincdialog.SparseAdagrad.v1", "learn_rate": rate}
        changes = {f"training.optimizer.{key}": value for key, value in optimizer.items()}
        words = f"should be a list of one number or more, each 0 or more, got {rate}"
        assert words in only_problem(GOOD, **changes)


def test_check_paths():
    assert load_config(GOOD, {"paths.train": "2024"}).interpolated["paths"]["train"] == "2024"
    assert load_config(GOOD, {"paths.train": '["a", "b"]'}).config["paths"]["train"] == ["a", "b"]
    problem = only_problem(GOOD.replace("[paths]", "[paths]\nmore = 3"))
    assert problem == "config:5  [paths] 'more' should be a string or null, got 3"


def test_check_objects_in_python_configs():
    config = {
        "agent": {"@agents": "test_config.Talker.v1", "layer": object()},
        "tasks": {"a": {"@teachers": "thincdialog.Conversations.v1"}},
    }
    assert "[agent] 'layer' is a object - a config holds numbers" in only_problem(config)


def test_check_what_a_function_finds_wrong_has_the_line_of_its_argument():
    def found(settings, **overrides):
        block = f'[world.batcher]\n@batchers = "thincdialog.Words.v1"\n{settings}\n'
        (problem,) = check_config(GOOD + block, overrides)
        return str(problem)

    line = GOOD.count("\n") + 3
    text = "[world.batcher] 'budget' of thincdialog.Words.v1 is"
    hint = "give whole numbers of at least 1"
    assert found("budget = 0") == f"config:{line}  {text} 0 - {hint}"
    many = found("budget = 7", **{"world.batcher.budget": 10**18})
    assert many == f"--world.batcher.budget  {text} {10**18} - {hint}, and at most {10**12:,}"
    buffer = found("budget = 1\nbuffer = 0")
    assert buffer.startswith(f"config:{line + 1}  [world.batcher] 'buffer'")


def test_check_name_of_a_function_on_two_lines_is_shown_on_one():
    text = changed('"thincdialog.Words.v1"', r'"thincdialog.Wor\nds.v1"')
    problems = check_config(text)
    assert problems and all("\n" not in str(problem) for problem in problems)
