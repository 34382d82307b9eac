import pytest
from confection import Config
from thinc.api import Optimizer

from tests.config.examples import GOOD, Picky, with_agent
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config, resolve_config


def test_load_completes_the_config_and_keeps_variables():
    checked = load_config(GOOD, {"paths.train": "a.jsonl"})
    config = checked.config
    assert config["tasks"]["dialogue"]["train"] == "${paths.train}"
    assert checked.interpolated["tasks"]["dialogue"]["train"] == "a.jsonl"
    assert config["system"] == {"seed": 0, "gpu_id": -1, "ops": "numpy"}
    assert config["training"]["max_steps"] == 10 and config["training"]["n_samples"] == 3
    assert config["world"]["batcher"] == {"@batchers": "thincdialog.Fixed.v1", "size": 64}
    assert set(config["evaluation"]["metrics"]) == {"accuracy", "f1", "ranking"}
    # A block of the config takes nothing from the default block it replaces.
    assert config["training"]["optimizer"]["learn_rate"]["@schedules"] == "warmup_linear.v1"
    assert not config.is_interpolated and checked.interpolated.is_interpolated


def test_load_puts_arguments_in_the_order_of_the_signature():
    block = '[agent.layer]\nkind = "hard"\nwidth = 3\n@layers = "test_config.Picky.v1"\n'
    layer = load_config(with_agent(block)).config["agent"]["layer"]
    # The default of `activation` is a function, which no config can hold.
    assert list(layer) == ["@layers", "width", "rate", "kind", "names", "weights", "inner", "deep"]


def test_load_takes_text_path_config_and_dict(tmp_path):
    path = tmp_path / "a.cfg"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    expected = load_config(GOOD).config
    uninterpolated = Config().from_str(
        GOOD.replace("[tasks.dialogue]", "[tasks]\n\n[tasks.dialogue]").replace(
            "[tasks.dialogue.mutators.*", "[tasks.dialogue.mutators]\n\n[tasks.dialogue.mutators.*"
        ),
        interpolate=False,
    )
    for given in (path, str(path), uninterpolated, dict(uninterpolated), expected):
        assert load_config(given).config == expected
    assert load_config(load_config(GOOD)).config == expected
    assert load_config(load_config(GOOD), {"system.seed": 7}).config["system"]["seed"] == 7


def test_load_keeps_dollar_signs():
    text = GOOD.replace("train = null", 'train = "a$$b"')
    assert load_config(text).interpolated["paths"]["train"] == "a$b"
    interpolated = load_config(text).interpolated
    assert load_config(interpolated).interpolated["tasks"]["dialogue"]["train"] == "a$b"
    assert load_config(GOOD, {"paths.train": "a$b"}).interpolated["paths"]["train"] == "a$b"


def test_load_overrides_reach_blocks_that_only_the_defaults_have():
    checked = load_config(GOOD, {"world.batcher.size": "8", "evaluation.metrics.ranking.ks": "[2]"})
    assert checked.interpolated["world"]["batcher"]["size"] == 8
    assert checked.interpolated["evaluation"]["metrics"]["ranking"]["ks"] == [2]
    assert checked.locations["world.batcher.size"] == "--world.batcher.size"


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
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words.replace("[", r"\[")):
        load_config(path)


def test_load_folder_instead_of_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load_config(tmp_path)


def test_resolve_builds_all_sections():
    parts = resolve_config(load_config(GOOD))
    assert isinstance(parts["agent"], RankerAgent)
    assert isinstance(parts["training"]["optimizer"], Optimizer)
    assert parts["training"]["max_steps"] == 10
    assert parts["training"]["callbacks"] == [] and callable(parts["training"]["logger"])
    assert list(parts["tasks"]) == ["dialogue"] and parts["tasks"]["dialogue"].splits == []
    assert [type(m).__name__ for m in parts["evaluation"]["metrics"]] == [
        "Accuracy",
        "F1",
        "Ranking",
    ]
    assert callable(parts["world"]) and parts["baselines"] == {}
    assert parts["system"] == {"seed": 0, "gpu_id": -1, "ops": "numpy"}
    without = GOOD[: GOOD.index("[tokenizer]")] + GOOD[GOOD.index("[agent]") :]
    assert resolve_config(load_config(without))["tokenizer"] is None


def built(block):
    return resolve_config(load_config(with_agent(block)))["agent"].arguments["layer"].arguments


PICKY = '@layers = "test_config.Picky.v1"\nwidth = {}\n'


def test_resolve_groups_lists_and_sections():
    two = "[agent.layer.{0}.*.b]\n" + PICKY.format(1) + "[agent.layer.{0}.*.a]\n" + PICKY.format(2)
    head = '[agent.layer]\n@layers = "test_config.Lists.v1"\n'
    parts = built(head + two.format("parts"))["parts"]
    assert [part.arguments["width"] for part in parts] == [1, 2]
    inline = 'parts = [{"@layers": "test_config.Picky.v1", "width": 3}, 4]\n'
    parts = built(head + inline)["parts"]
    assert isinstance(parts[0], Picky) and parts[1] == 4
    options = "parts = []\n[agent.layer.options.x]\n" + PICKY.format(5)
    assert built(head + options)["options"]["x"].arguments["width"] == 5
    group = two.format("@").replace(".@", "")
    chain = built('[agent.layer]\n@layers = "test_config.Chain.v1"\nlabel = "c"\n' + group)
    assert [part.arguments["width"] for part in chain["parts"]] == [1, 2]
    assert chain["label"] == "c"


def test_resolve_builds_a_block_for_every_reference():
    block = '[agent.layer]\n@layers = "test_config.Lists.v1"\nparts = []\n'
    block += "[agent.layer.options]\na = ${agent.layer.options.b}\n[agent.layer.options.b]\n"
    options = built(block + PICKY.format(3))["options"]
    assert options["a"] is not options["b"]
    assert options["a"].arguments == options["b"].arguments


def test_resolve_reports_what_functions_refuse():
    block = '[agent.layer]\n@layers = "test_config.Picky.v1"\nwidth = 3\nrate = 2.0\n'
    text = with_agent(block).replace("min_freq = 2", "min_freq = -2")
    problems = check_config(text)
    with pytest.raises(ConfigError) as caught:
        resolve_config(load_config(text))
    assert sorted(caught.value.problems) == sorted(problems) and len(problems) == 2
    assert "[tokenizer] thincdialog.Words.v1: min_freq = -2, expected" in str(caught.value)
    assert "[agent.layer] test_config.Picky.v1: rate = 2.0, expected 0.0 to 1.0" in str(
        caught.value
    )


def test_resolve_locates_what_functions_find_wrong_in_their_arguments(tmp_path):
    path = tmp_path / "a.cfg"
    block = '[world.batcher]\n@batchers = "thincdialog.Fixed.v1"\nsize = 0\n'
    path.write_text(f"{GOOD}\n{block}")
    (problem,) = check_config(path)
    assert problem.where == f"{path}:{len(GOOD.splitlines()) + 4}"
    assert problem.text == "[world.batcher] 'size' of thincdialog.Fixed.v1 is 0"


def test_resolve_sees_that_blocks_build_what_is_wanted():
    block = '[agent.layer]\n@layers = "test_config.Picky.v1"\nwidth = 3\n'
    block += '[agent.layer.inner]\n@optimizers = "Adam.v1"\nlearn_rate = 0.1\n'
    (problem,) = check_config(with_agent(block))
    assert (
        "[agent.layer] 'inner' of test_config.Picky.v1 should be a block that builds a Model"
        in (problem.text)
    )
    assert problem.text.endswith("got a Optimizer")


def test_resolve_keeps_the_cause_for_tracebacks():
    block = '[agent.layer]\n@layers = "test_config.Picky.v1"\nwidth = 3\nrate = 2.0\n'
    with pytest.raises(ConfigError) as caught:
        resolve_config(load_config(with_agent(block)))
    assert isinstance(caught.value.__cause__, ValueError)


# The sections up to [training].
WITHOUT_TRAINING = GOOD[: GOOD.index("[training]")]


def test_load_block_that_only_changes_arguments_keeps_the_default_function():
    text = (
        WITHOUT_TRAINING + "\n[training.optimizer]\nlearn_rate = 0.5\n\n[world.batcher]\nsize = 7\n"
    )
    config = load_config(text).config
    assert config["training"]["optimizer"]["@optimizers"] == "Adam.v1"
    assert config["training"]["optimizer"]["learn_rate"] == 0.5
    assert config["training"]["optimizer"]["grad_clip"] == 1.0
    assert config["world"]["@worlds"] == "thincdialog.BatchWorld.v1"
    assert config["world"]["batcher"] == {"@batchers": "thincdialog.Fixed.v1", "size": 7}


def test_load_block_of_another_function_takes_nothing_from_the_default():
    text = WITHOUT_TRAINING + '\n[training.optimizer]\n@optimizers = "thincdialog.LazyAdam.v1"\n'
    assert load_config(text).config["training"]["optimizer"]["use_averages"] is False


def test_override_of_what_builds_a_default_block_keeps_the_arguments_it_takes():
    world = load_config(GOOD, {"world.@worlds": "thincdialog.PartnerWorld.v1"}).config["world"]
    assert world == {"@worlds": "thincdialog.PartnerWorld.v1"}
    # In any order.
    changes = {"world.batcher.size": 3, "world.@worlds": "thincdialog.BatchWorld.v1"}
    assert load_config(GOOD, changes).config["world"]["batcher"]["size"] == 3
    without = GOOD[: GOOD.index("[training.optimizer]")]
    changes = {"training.optimizer.learn_rate": 0.1, "training.optimizer.@optimizers": "SGD.v1"}
    optimizer = load_config(without, changes).config["training"]["optimizer"]
    assert optimizer["@optimizers"] == "SGD.v1" and optimizer["learn_rate"] == 0.1


def test_override_of_what_builds_a_block_leaves_what_is_written_to_be_checked():
    for block in ('[world]\n@worlds = "thincdialog.BatchWorld.v1"\n\n', ""):
        text = f"{GOOD}\n{block}[world.batcher]\nsize = 5\n"
        with pytest.raises(ConfigError, match="PartnerWorld.v1 has no argument 'batcher'"):
            load_config(text, {"world.@worlds": "thincdialog.PartnerWorld.v1"})


def test_override_of_what_builds_a_block_replaces_the_arguments_of_what_it_replaces():
    batcher = '[world.batcher]\n@batchers = "thincdialog.Fixed.v1"\nsize = 5\n'
    words = {"world.batcher.@batchers": "thincdialog.Words.v1", "world.batcher.budget": 300}
    # "size" was meant for Fixed.v1, whether Fixed.v1 is written there or the default.
    for text in (batcher, batcher.replace('@batchers = "thincdialog.Fixed.v1"\n', "")):
        changed = load_config(f"{GOOD}\n{text}", words).config["world"]["batcher"]
        assert changed == {
            "@batchers": "thincdialog.Words.v1", "budget": 300, "padding": True, "buffer": 256,
            "oversize": "alone",
        }  # fmt: skip
    # What both take stays; what neither takes, or an override says, is not dropped.
    sort = {"world.batcher.@batchers": "thincdialog.Batchsort.v1"}
    assert load_config(f"{GOOD}\n{batcher}", sort).config["world"]["batcher"]["size"] == 5
    with pytest.raises(ConfigError, match="Words.v1 has no argument 'sise'"):
        load_config(f"{GOOD}\n{batcher}sise = 3\n", words)
    with pytest.raises(ConfigError, match="--world.batcher.size .*Words.v1 has no argument"):
        load_config(f"{GOOD}\n{batcher}", {"world.batcher.size": 3, **words})


def test_override_puts_a_block_where_a_value_stands():
    schedule = {
        "training.optimizer.learn_rate.@schedules": "compounding.v1",
        "training.optimizer.learn_rate.start": 1,
        "training.optimizer.learn_rate.stop": 8,
        "training.optimizer.learn_rate.compound": 2,
    }
    text = GOOD[: GOOD.index("[training.optimizer]")]
    rate = {"@schedules": "compounding.v1", "start": 1, "stop": 8, "compound": 2, "t": 0.0}
    written = '[training.optimizer]\n@optimizers = "Adam.v1"\n'
    for added in ("", written, f"{written}learn_rate = 0.1\n"):
        config = load_config(text + added, schedule).config
        assert config["training"]["optimizer"]["learn_rate"] == rate
    with pytest.raises(ConfigError, match=r"no section \[training.max_steps\] - .* value, 10$"):
        load_config(GOOD, {"training.max_steps.@schedules": "compounding.v1"})
