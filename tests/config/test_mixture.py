"""Several tasks in a config: what [mixture] may say, and what is wrong with the rest."""

import pytest

from tests.config.examples import GOOD
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config, resolve_config, write_config

TASK = '@teachers = "thincdialog.Conversations.v1"\n\n'
TWO = GOOD.replace("[tokenizer]", f"[tasks.chat]\n{TASK}[tokenizer]")
# Where what is added to it begins.
LINE = TWO.count("\n") + 1
BATCH_WORLD = "thincdialog.BatchWorld.v1"


def problems(added, **overrides):
    return list(map(str, check_config(f"{TWO}{added}", overrides)))


@pytest.mark.parametrize("config", [GOOD, TWO], ids=["one task", "two tasks"])
def test_mixture_defaults_need_not_be_said(config):
    assert check_config(config) == []
    mixture = {"unit": "examples", "weights": None, "repeat": False}
    assert resolve_config(load_config(config))["mixture"] == mixture


@pytest.mark.parametrize(
    "added, line, expected",
    [
        ("[mixture.weights]\nchta = 1\ndialogue = 2\n", 1,
         "[mixture.weights] there is no task 'chta' - did you mean 'chat'?"),
        ("[mixture.weights]\nchat = 1\ndialogue = 2\ntrivia = 1\n", 3,
         "[mixture.weights] there is no task 'trivia' - there is: dialogue, chat"),
        ("[mixture.weights]\nchat = 1\n", 0,
         "[mixture.weights] has no weight for the task 'dialogue' - add: dialogue = 1; "
         "0 leaves the task out"),
        ("[mixture.weights]\nchat = 0\ndialogue = 0.0\n", 0,
         "[mixture.weights] are all 0 - give a task more, or nothing is shown"),
        ("[mixture.weights]\nchat = -1\ndialogue = 1\n", 1,
         "[mixture.weights] 'chat' should be a number, 0 or more, got -1"),
        ('[mixture.weights]\nchat = "2"\ndialogue = 1\n', 1,
         "[mixture.weights] 'chat' should be a number, 0 or more, got \"2\" - write it "
         "without quotes"),
        ("[mixture.weights]\nchat = true\ndialogue = 1\n", 1,
         "[mixture.weights] 'chat' should be a number, 0 or more, got true"),
        ("[mixture.weights]\nchat = 1\ndialogue = ${paths.much}\n", 2,
         "[mixture.weights] 'dialogue' refers to ${paths.much}, which is not defined - "
         "did you mean ${paths}?"),
        ("[mixture]\nweights = [1, 2]\n", 1,
         "[mixture] 'weights' should be a section or null, got [1, 2] - A number for each "
         "task, 0 or more, in a section of its own: [mixture.weights] NAME = 2 Or null, to "
         "mix the tasks in proportion to their sizes, so that all end together"),
        ('[mixture]\nunit = "turns"\n', 1,
         '[mixture] \'unit\' should be "episodes" or "examples" or "words", got "turns" - '
         'What the weights share out: "episodes", "examples" or "words"'),
        ("[mixture]\nrepeat = yes\n", 1,
         "[mixture] 'repeat' should be true or false, got \"yes\" - write true or false"),
        ("[mixture]\nrepaet = true\n", 1,
         "[mixture] has no setting 'repaet' - did you mean 'repeat'?"),
        ("[mixture.weight]\nchat = 1\n", 0,
         "[mixture] has no sub-section 'weight' - did you mean 'weights'?"),
        (f"[tasks.macro]\n{TASK}", 0,
         "[tasks.macro] has the name that reports give to the mean over tasks - choose "
         "another one"),
        (f"[tasks.all]\n{TASK}", 0,
         "[tasks.all] has the name that reports give to all examples together - choose "
         "another one"),
        ("[evaluation]\nbatch_sizes = 3\n", 1,
         "[evaluation] has no setting 'batch_sizes' - it has: max_examples, n_candidates, "
         "world, metrics"),
    ],
)  # fmt: skip
def test_mixture_mistakes_have_a_line_and_a_remedy(added, line, expected):
    assert problems(added) == [f"config:{LINE + line}  {expected}"]
    # What a config says is judged before any data is looked for.
    with pytest.raises(ConfigError):
        load_config(f"{TWO}{added}", {"paths.train": "none.jsonl"})


def test_mixture_tasks_must_be_there():
    start, end = GOOD.index("# Who talks"), GOOD.index("[tokenizer]")
    (problem,) = check_config(GOOD[:start] + "[tasks]\n\n" + GOOD[end:])
    assert problem.text == "[tasks.NAME] must be there at least once, got none"


def test_mixture_of_one_task_may_be_named_macro():
    assert check_config(GOOD.replace("tasks.dialogue", "tasks.macro")) == []


def test_mixture_overrides():
    def weights(added, **changes):
        return load_config(f"{TWO}{added}", changes).config["mixture"]["weights"]

    name = "mixture.weights.{}".format
    both = "[mixture.weights]\nchat = 1\ndialogue = 1\n"
    changes = {name("chat"): "0", name("dialogue"): 1.5}
    assert weights("", **changes) == {"chat": 0, "dialogue": 1.5}
    assert weights(both, **{name("chat"): 2}) == {"chat": 2, "dialogue": 1}
    assert weights(both, **{"mixture.weights": "null"}) is None
    (problem,) = problems(both, **{name("chta"): 2})
    assert problem.startswith(f"--{name('chta')}  [mixture.weights] there is no task 'chta'")


def test_mixture_is_written_with_its_comments_behind_the_tasks():
    added = '[mixture]\n# Play.\nunit = "words"\n\n[mixture.weights]\n# Much.\nchat = 3\n'
    checked = load_config(f"{TWO}{added}dialogue = 1\n")
    text = write_config(checked.config, checked.given.source)
    written = added.replace("\n\n", "\nrepeat = false\n\n") + "dialogue = 1\n\n[tokenizer]\n"
    assert written in text
    assert load_config(text).config == checked.config
    defaults = '[mixture]\nunit = "examples"\nweights = null\nrepeat = false\n'
    assert defaults in write_config(load_config(TWO).config)


@pytest.mark.parametrize(
    "added, overrides",
    [
        ("[evaluation.world.batcher]\nsize = 7\n", {}),
        ("", {"evaluation.world.batcher.size": "7"}),
        ("[evaluation]\nworld = null\n", {"evaluation.world.batcher.size": "7"}),
        (
            "[evaluation.world]\n",
            {"evaluation.world.batcher.@batchers": "thincdialog.Fixed.v1",
             "evaluation.world.batcher.size": 7},
        ),
    ],
)  # fmt: skip
def test_evaluation_world_takes_what_it_leaves_out_from_the_default_world(added, overrides):
    config = load_config(f"{TWO}[world.batcher]\nsize = 3\n\n{added}", overrides).config
    batcher = {"@batchers": "thincdialog.Fixed.v1", "size": 7}
    assert config["evaluation"]["world"] == {"@worlds": BATCH_WORLD, "batcher": batcher}
    assert config["world"]["batcher"]["size"] == 3


def test_batchers_take_a_number_or_a_schedule():
    schedule = '@schedules = "compounding.v1"\nstart = 2\nstop = 9\ncompound = 1.1\n'
    assert problems(f"[evaluation.world.batcher.size]\n{schedule}") == []
    (problem,) = problems("", **{"world.batcher.size": 2.5})
    wanted = "an integer or a block that builds a schedule, got 2.5"
    assert f"[world.batcher] 'size' of thincdialog.Fixed.v1 should be {wanted}" in problem


def test_evaluation_world_is_that_of_training_unless_given():
    checked = load_config(TWO)
    parts = resolve_config(checked)
    assert "world" not in checked.config["evaluation"]
    assert parts["evaluation"]["world"] is parts["world"]
    checked = load_config(TWO, {"evaluation.world.@worlds": "thincdialog.PartnerWorld.v1"})
    assert checked.config["evaluation"]["world"] == {"@worlds": "thincdialog.PartnerWorld.v1"}
    assert resolve_config(checked)["evaluation"]["world"] is not parts["world"]


def test_mixture_weights_that_miss_one_task_and_name_another():
    assert problems("[mixture.weights]\ndialogue = 1\nbank = 1\n") == [
        f"config:{LINE}  [mixture.weights] has no weight for the task 'chat' - add: chat = 1; "
        "0 leaves the task out",
        f"config:{LINE + 2}  [mixture.weights] there is no task 'bank' - there is: chat",
    ]
