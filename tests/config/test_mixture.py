"""Configs with several tasks: valid values of [mixture], and mistakes in the rest."""

import pytest

from tests.config.examples import GOOD
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config, resolve_config

TASK = '@teachers = "thincdialog.Conversations.v1"\n\n'
TWO = GOOD.replace("[tokenizer]", f"[tasks.chat]\n{TASK}[tokenizer]")
# The position at which lines are added.
LINE = TWO.count("\n") + 1


def problems(added, **overrides):
    return list(map(str, check_config(f"{TWO}{added}", overrides)))


def test_mixture_defaults_need_not_be_given():
    mixture = {"unit": "examples", "weights": None, "repeat": False}
    for config in (GOOD, TWO):
        assert check_config(config) == []
        assert resolve_config(load_config(config))["mixture"] == mixture


@pytest.mark.parametrize(
    "added, line, expected",
    [
        ("[mixture.weights]\nchta = 1\ndialogue = 2", 1,
         "there is no task 'chta' - did you mean 'chat'?"),
        ("[mixture.weights]\nchat = 1\ndialogue = 2\ntrivia = 1", 3,
         "there is no task 'trivia' - found: dialogue, chat"),
        ("[mixture.weights]\nchat = 1", 0,
         "has no weight for the task 'dialogue' - add: dialogue = 1; 0 leaves the task out"),
        ("[mixture.weights]\nchat = 0\ndialogue = 0.0", 0,
         "are all 0 - set one above 0, or no example is used"),
        ("[mixture.weights]\nchat = -1\ndialogue = 1", 1,
         "'chat' should be a number, 0 or more, got -1"),
        ('[mixture.weights]\nchat = "2"\ndialogue = 1', 1,
         "'chat' should be a number, 0 or more, got \"2\" - write it without quotes"),
        ("[mixture.weights]\nchat = 1\ndialogue = ${paths.much}", 2,
         "'dialogue' refers to ${paths.much}, which is not defined - did you mean ${paths}?"),
        ("[mixture]\nweights = [1, 2]", 1,
         "'weights' should be a section or null, got [1, 2] - Weight of each task, 0 or "
         "more, in a separate section; null mixes tasks in proportion to their sizes, so that "
         "all of them end together, or equally if one of them is streamed. For example: "
         "[mixture.weights] NAME = 2"),
        ("[mixture]\n[mixture.weight]\nchat = 1", 1,
         "has no sub-section 'weight' - did you mean 'weights'?"),
        (f"[tasks.macro]\n{TASK}", 0,
         "has the name that reports use for the mean over tasks - choose another one"),
        (f"[tasks.all]\n{TASK}", 0,
         "has the name that reports use for all examples together - choose another one"),
        ("[evaluation]\nbatch_sizes = 3", 1,
         "has no setting 'batch_sizes' - it has: max_examples, n_candidates, world, metrics"),
    ],
)  # fmt: skip
def test_mixture_mistakes_have_a_line_and_a_remedy(added, line, expected):
    section = added.splitlines()[0]
    assert problems(added) == [f"config:{LINE + line}  {section} {expected}"]
    # The config is checked before any data is read.
    with pytest.raises(ConfigError):
        load_config(f"{TWO}{added}", {"paths.train": "none.jsonl"})


def test_mixture_tasks_must_be_there_and_one_may_have_any_name():
    start, end = GOOD.index("# Who talks"), GOOD.index("[tokenizer]")
    (problem,) = check_config(GOOD[:start] + "[tasks]\n\n" + GOOD[end:])
    assert problem.text == "at least one section [tasks.NAME] is needed, got none"
    assert check_config(GOOD.replace("tasks.dialogue", "tasks.macro")) == []


def test_mixture_weight_of_no_task_in_an_override_and_next_to_a_missing_one():
    weights, name = "[mixture.weights]\nchat = 1\ndialogue = 1\n", "mixture.weights.chta"
    (problem,) = problems(weights, **{name: 2})
    assert problem.startswith(f"--{name}  [mixture.weights] there is no task 'chta'")
    missing, unknown = problems(weights.replace("chat", "bank"))
    assert missing.startswith(f"config:{LINE}  [mixture.weights] has no weight for the task 'chat'")
    words = "[mixture.weights] there is no task 'bank' - found: chat"
    assert unknown == f"config:{LINE + 1}  {words}"


def test_batchers_take_a_number_or_a_schedule():
    schedule = '@schedules = "compounding.v1"\nstart = 2\nstop = 9\ncompound = 1.1\n'
    assert problems(f"[evaluation.world.batcher.size]\n{schedule}") == []
    (problem,) = problems("", **{"world.batcher.size": 2.5})
    wanted = 'an integer or a block that builds a schedule or "auto", got 2.5'
    assert f"[world.batcher] 'size' of thincdialog.Fixed.v1 should be {wanted}" in problem


def test_evaluation_world_is_that_of_training_unless_given():
    checked = load_config(TWO)
    parts = resolve_config(checked)
    assert "world" not in checked.config["evaluation"]
    assert parts["evaluation"]["world"] is parts["world"]
    checked = load_config(TWO, {"evaluation.world.@worlds": "thincdialog.PartnerWorld.v1"})
    assert checked.config["evaluation"]["world"] == {"@worlds": "thincdialog.PartnerWorld.v1"}
    assert resolve_config(checked)["evaluation"]["world"] is not parts["world"]
