import re

import pytest
from confection import Config
from thinc.api import Optimizer

from tests.config.examples import GOOD, Picky, with_agent
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config, resolve_config


def test_load_completes_the_config_and_keeps_variables():
    checked = load_config(GOOD, {"paths.train": "a.jsonl"})
    config, interpolated = checked.config, checked.interpolated
    assert config["tasks"]["dialogue"]["train"] == "${paths.train}"
    assert interpolated["tasks"]["dialogue"]["train"] == "a.jsonl"
    assert config["system"] == {"seed": 0, "gpu_id": -1, "ops": "auto"}
    assert config["training"]["max_steps"] == 10 and config["training"]["n_samples"] == 3
    assert config["world"]["batcher"] == {"@batchers": "thincdialog.Fixed.v1", "size": 64}
    assert set(config["evaluation"]["metrics"]) == {"accuracy", "f1", "ranking"}
    # A block of the config inherits nothing from the default block that it replaces.
    assert config["training"]["optimizer"]["learn_rate"]["@schedules"] == "warmup_linear.v1"
    assert not config.is_interpolated and interpolated.is_interpolated


def test_load_puts_arguments_in_the_order_of_the_signature():
    block = '[agent.layer]\nkind = "hard"\nwidth = 3\n@layers = "test_config.Picky.v1"\n'
    layer = load_config(with_agent(block)).config["agent"]["layer"]
    # The default of `activation` is a function, which cannot be written in a config.
    assert list(layer) == ["@layers", "width", "rate", "kind", "names", "weights", "inner", "deep"]


def test_load_takes_text_path_config_and_dict(tmp_path):
    path = tmp_path / "a.cfg"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    expected = load_config(GOOD).config
    # confection requires explicit parent sections.
    text = GOOD.replace("[tasks.dialogue]", "[tasks]\n\n[tasks.dialogue]")
    text = text.replace("[tasks.dialogue.mu", "[tasks.dialogue.mutators]\n\n[tasks.dialogue.mu", 1)
    uninterpolated = Config().from_str(text, interpolate=False)
    for given in (path, str(path), uninterpolated, dict(uninterpolated), expected):
        assert load_config(given).config == expected
    assert load_config(load_config(GOOD)).config == expected
    assert load_config(load_config(GOOD), {"system.seed": 7}).config["system"]["seed"] == 7


def test_load_keeps_dollar_signs():
    interpolated = load_config(GOOD.replace("train = null", 'train = "a$$b"')).interpolated
    assert interpolated["paths"]["train"] == "a$b"
    assert load_config(interpolated).interpolated["tasks"]["dialogue"]["train"] == "a$b"


def test_load_overrides_of_paths():
    def train(value):
        return load_config(GOOD, {"paths.train": value}).interpolated["paths"]["train"]

    assert [train("a$b"), train("2024"), train('["a", "b"]')] == ["a$b", "2024", ["a", "b"]]


def test_load_overrides_reach_blocks_that_only_the_defaults_have():
    checked = load_config(GOOD, {"world.batcher.size": "8", "evaluation.metrics.ranking.ks": "[2]"})
    assert checked.interpolated["world"]["batcher"]["size"] == 8
    assert checked.interpolated["evaluation"]["metrics"]["ranking"]["ks"] == [2]
    assert checked.where("world", "batcher", "size") == "--world.batcher.size"


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "there is no file"),
        (b"\xff\xfe[paths]", "byte 0 is not UTF-8 - save the file as UTF-8"),
        (b"", "the section [agent] is missing"),
        (b"PK\x03\x04\x00\x00", "is neither a [section] nor 'key = value'"),
    ],
)
def test_load_bad_files(tmp_path, content, words):
    path = tmp_path / "bad.cfg"
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load_config(tmp_path)
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(words)):
        load_config(path)


def test_resolve_builds_all_sections():
    parts = resolve_config(load_config(GOOD))
    assert isinstance(parts["agent"], RankerAgent)
    assert isinstance(parts["training"]["optimizer"], Optimizer)
    assert parts["training"]["max_steps"] == 10
    assert parts["training"]["callbacks"] == [] and callable(parts["training"]["logger"])
    assert list(parts["tasks"]) == ["dialogue"] and parts["tasks"]["dialogue"].splits == []
    names = [type(metric).__name__ for metric in parts["evaluation"]["metrics"]]
    assert names == ["Accuracy", "F1", "Ranking"]
    assert callable(parts["world"]) and parts["baselines"] == {}
    assert parts["system"] == {"seed": 0, "gpu_id": -1, "ops": "auto"}
    without = GOOD[: GOOD.index("[tokenizer]")] + GOOD[GOOD.index("[agent]") :]
    assert resolve_config(load_config(without))["tokenizer"] is None


def built(block):
    return resolve_config(load_config(with_agent(block)))["agent"].arguments["layer"].arguments


PICKY = '@layers = "test_config.Picky.v1"\nwidth = {}\n'
LISTS = '[agent.layer]\n@layers = "test_config.Lists.v1"\n'


def test_resolve_groups_lists_and_sections():
    two = "[agent.layer.{0}.*.b]\n" + PICKY.format(1) + "[agent.layer.{0}.*.a]\n" + PICKY.format(2)
    parts = built(LISTS + two.format("parts"))["parts"]
    assert [part.arguments["width"] for part in parts] == [1, 2]
    inline = 'parts = [{"@layers": "test_config.Picky.v1", "width": 3}, 4]\n'
    first, second = built(LISTS + inline)["parts"]
    assert isinstance(first, Picky) and second == 4
    options = "parts = []\n[agent.layer.options.x]\n" + PICKY.format(5)
    assert built(LISTS + options)["options"]["x"].arguments["width"] == 5
    group = two.format("@").replace(".@", "")
    chain = built(LISTS.replace("Lists", "Chain") + 'label = "c"\n' + group)
    assert [part.arguments["width"] for part in chain["parts"]] == [1, 2]
    assert chain["label"] == "c"


def test_resolve_builds_a_block_for_every_reference():
    block = "[agent.layer.options]\na = ${agent.layer.options.b}\n[agent.layer.options.b]\n"
    options = built(f"{LISTS}parts = []\n{block}{PICKY.format(3)}")["options"]
    assert options["a"] is not options["b"]
    assert options["a"].arguments == options["b"].arguments


def test_resolve_reports_what_functions_refuse():
    text = with_agent(f"[agent.layer]\n{PICKY.format(3)}rate = 2.0\n")
    text = text.replace("min_freq = 2", "min_freq = -2") + "\n[training]\nmax_stepz = 3\n"
    first, second, unknown = check_config(text)
    assert "max_stepz" in str(unknown)
    text = text.replace("stepz", "steps")
    first, second = problems = check_config(text)
    assert "[tokenizer] thincdialog.Words.v1: min_freq = -2, expected" in str(first)
    assert "[agent.layer] test_config.Picky.v1: rate = 2.0, expected 0.0 to 1.0" in str(second)
    with pytest.raises(ConfigError) as caught:
        resolve_config(load_config(text))
    assert sorted(caught.value.problems) == sorted(problems)
    assert isinstance(caught.value.__cause__, ValueError)  # For tracebacks.


# The part before the optimizer.
START = GOOD[: GOOD.index("[training.optimizer]")]
ADAM = '[training.optimizer]\n@optimizers = "Adam.v1"\n'
BATCHER = '[world.batcher]\n@batchers = "thincdialog.Fixed.v1"\nsize = 5\n'
TO_PARTNER = {"world.@worlds": "thincdialog.PartnerWorld.v1"}
TO_WORDS = {"world.batcher.@batchers": "thincdialog.Words.v1", "world.batcher.budget": 300}
WORDS = {"@batchers": "thincdialog.Words.v1", "budget": 300, "padding": True, "size": None}
RATE = {"@schedules": "compounding.v1", "start": 1, "stop": 8, "compound": 2}
TO_RATE = {f"training.optimizer.learn_rate.{key}": value for key, value in RATE.items()}
FIXED_7 = {"@batchers": "thincdialog.Fixed.v1", "size": 7}
WORLD_7 = {"@worlds": "thincdialog.BatchWorld.v1", "batcher": FIXED_7}
TO_FIXED_7 = {f"evaluation.world.batcher.{key}": str(value) for key, value in FIXED_7.items()}
SIZE_7 = {"evaluation.world.batcher.size": "7"}
WEIGHTS = "[mixture.weights]\ndialogue = 1\n"


@pytest.mark.parametrize(
    "text, overrides, path, expected",
    [
        # A block that only changes arguments keeps the default function.
        (f"{START}[training.optimizer]\nlearn_rate = 0.5\n", {}, "training.optimizer",
         {"@optimizers": "thincdialog.LazyAdam.v1", "learn_rate": 0.5, "use_averages": True}),
        (f"{GOOD}[world.batcher]\nsize = 7\n", {}, "world", WORLD_7),
        # A block with another function inherits nothing from the default block.
        (START + ADAM.replace("Adam", "thincdialog.SparseSGD") + "learn_rate = 1.0\n", {},
         "training.optimizer", {"use_averages": False}),
        # Overriding the function of a default block keeps the arguments that the new function
        # accepts.
        (GOOD, TO_PARTNER, "world", {"@worlds": "thincdialog.PartnerWorld.v1", "batcher": None}),
        (GOOD, {"world.batcher.size": 3, "world.@worlds": WORLD_7["@worlds"]}, "world.batcher",
         {"size": 3}),
        (START, {"training.optimizer.learn_rate": 0.1, "training.optimizer.@optimizers": "SGD.v1"},
         "training.optimizer", {"@optimizers": "SGD.v1", "learn_rate": 0.1}),
        # The size was meant for Fixed.v1, whether that is written there or is the default.
        (GOOD + BATCHER, TO_WORDS, "world.batcher", WORDS),
        (f"{GOOD}[world.batcher]\nsize = 5\n", TO_WORDS, "world.batcher", WORDS),
        # So were the sections in the block.
        (f'{GOOD}[world]\n@worlds = "thincdialog.BatchWorld.v1"\n{BATCHER}', TO_PARTNER, "world",
         {"@worlds": "thincdialog.PartnerWorld.v1", "batcher": None}),
        (f"{GOOD}[world.batcher]\nsize = 5\n", TO_PARTNER, "world", {"batcher": None}),
        # Arguments that both functions accept are kept.
        (GOOD + BATCHER, {"world.batcher.@batchers": "thincdialog.Batchsort.v1"}, "world.batcher",
         {"size": 5}),
        # A block replaces a value, or is added.
        (START, TO_RATE, "training.optimizer.learn_rate", {**RATE, "t": 0.0}),
        (START + ADAM, TO_RATE, "training.optimizer.learn_rate", {**RATE, "t": 0.0}),
        (f"{START}{ADAM}learn_rate = 0.1\n", TO_RATE, "training.optimizer.learn_rate", RATE),
        # Missing settings of the evaluation's world come from the default world.
        (f"{GOOD}[evaluation.world.batcher]\nsize = 7\n", {}, "evaluation.world", WORLD_7),
        (GOOD + BATCHER, SIZE_7, "evaluation.world", WORLD_7),
        (GOOD + BATCHER, SIZE_7, "world.batcher", {"size": 5}),
        (f"{GOOD}[evaluation]\nworld = null\n", SIZE_7, "evaluation.world", WORLD_7),
        (f"{GOOD}[evaluation.world]\n", TO_FIXED_7, "evaluation.world", WORLD_7),
        # There are no default weights of tasks.
        (GOOD, {"mixture.weights.dialogue": "1.5"}, "mixture", {"weights": {"dialogue": 1.5}}),
        (GOOD + WEIGHTS, {"mixture.weights.dialogue": 2}, "mixture", {"weights": {"dialogue": 2}}),
        (GOOD + WEIGHTS, {"mixture.weights": "null"}, "mixture", {"weights": None}),
    ],
)  # fmt: skip
def test_load_combines_blocks_with_their_defaults(text, overrides, path, expected):
    block = load_config(text, overrides).config
    for part in path.split("."):
        block = block[part]
    assert {key: block.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    "added, overrides, words",
    [
        # An argument of neither function, or one of the new function, is not dropped.
        ("[world]\nsise = 5\n", TO_PARTNER, "PartnerWorld.v1 has no argument 'sise'"),
        ("", {"world.batcher.size": 3, **TO_PARTNER}, "--world.batcher.size .*no section "),
        (f"{BATCHER}sise = 3\n", TO_WORDS, "Words.v1 has no argument 'sise'"),
        (BATCHER, {"world.batcher.size": 3, **TO_WORDS},
         "--world.batcher.size .*Words.v1 has no argument"),
        ("", {"training.max_steps.@schedules": "compounding.v1"},
         r"no section \[training.max_steps\] - .* value, 10$"),
    ],
)  # fmt: skip
def test_load_refuses_impossible_blocks(added, overrides, words):
    with pytest.raises(ConfigError, match=words):
        load_config(GOOD + added, overrides)
