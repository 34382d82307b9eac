"""Problems in a config are found before any data is read, and reported together."""

import re

import pytest

from tests.training.examples import CLASSIFIER, RANKER
from thincdialog.api import ConfigError, Experiment
from thincdialog.cli.main import main
from thincdialog.training.problems import check_training, find_problems

TWO = """[tasks.more]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 10
n_dev = 10

"""


@pytest.mark.parametrize(
    "score, said",
    [
        ("f2", r"'f2' is not measured on the dev data - choose one of: .*accuracy, examples"),
        ("hits@2", r"'hits@2' is not measured on the dev data - did you mean 'hits@"),
        ("coffee/accuracy", "'coffee/accuracy' is not measured on the dev data"),
    ],
)
def test_a_score_that_is_never_measured_is_found_before_data_is_read(score, said):
    config = RANKER.replace('score = "hits@1"', f'score = "{score}"')
    line = config[: config.index("score =")].count("\n") + 1
    experiment = Experiment.from_config(config)
    (problem,) = find_problems(experiment)
    assert problem.where == f"config:{line}" and re.search(said, str(problem))
    with pytest.raises(ConfigError, match=said):
        check_training(experiment)
    assert not list(experiment.agent.__dict__.get("fixed"))


def test_scores_that_are_measured_pass(tmp_path):
    for score in ("mrr", "f1", "loss", "truncated_contexts", "examples"):
        config = RANKER.replace('score = "hits@1"', f'score = "{score}"')
        assert not find_problems(Experiment.from_config(config))
    two = RANKER.replace("[tokenizer]", TWO + "[tokenizer]")
    for score in ("more/hits@1", "macro/hits@1", "hits@1"):
        config = two.replace('score = "hits@1"', f'score = "{score}"')
        assert not find_problems(Experiment.from_config(config))


def test_a_label_as_the_only_candidate_is_refused():
    experiment = Experiment.from_config(RANKER, {"evaluation.n_candidates": 1})
    (problem,) = find_problems(experiment)
    assert "n_candidates = 1: the label would be the only candidate" in problem.text


@pytest.mark.parametrize("source", ["batch", "batch_all", "fixed", "vocab", "inline", None])
def test_drawn_candidates_that_the_agent_would_not_use_are_refused(source):
    changes = {"agent.eval_candidates": source, "evaluation.n_candidates": 100}
    experiment = Experiment.from_config(RANKER, changes)
    if source in ("inline", None):
        check_training(experiment)
        assert experiment.evaluation_split("dev").n_examples
        return
    said = "n_candidates = 100, but .agent. eval_candidates overrides it - use one of them"
    for check in (lambda: check_training(experiment), lambda: experiment.evaluation_split("dev")):
        with pytest.raises(ConfigError, match=said):
            check()
    experiment = Experiment.from_config(RANKER, {"agent.eval_candidates": source})
    assert not find_problems(experiment)


def test_all_problems_are_reported_at_once(tmp_path, capsys):
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "red\tcolour\nfour\tnumber\n" * 20)
    learner = CLASSIFIER[CLASSIFIER.index("[agent]") :]
    path = tmp_path / "mine.cfg"
    path.write_text(f"""[paths]
train = null

[tasks.words]
@teachers = "thincdialog.LabelledText.v1"
train = ${{paths.train}}
{CLASSIFIER}
{learner.replace("[agent", "[baselines.other")}
[training.optimizer]
@optimizers = "Adam.v1"

[training.optimizer.learn_rate]
@schedules = "thincdialog.Plateau.v1"
learn_rate = 0.01

[runner]
@runners = "thincdialog.Hogwild.v1"

[system]
gpu_id = 0
""")
    train = ["--paths.train", str(tmp_path / "train.tsv")]
    assert main(["debug", "config", str(path), *train]) == 1
    shown = capsys.readouterr().err
    assert "3 problems in" in shown
    for said in ("[baselines.other] has weights", "needs scores on dev data", "asks for a GPU"):
        assert said in shown
    # As long as no data is given, dev data may still be added together with it.
    assert main(["debug", "config", str(path), "--system.gpu_id", "-1"]) == 1
    shown = capsys.readouterr().err
    assert "1 problem in" in shown and "[baselines.other] has weights" in shown


def schedule(name, settings):
    return f"""[training.optimizer]
@optimizers = "Adam.v1"

[training.optimizer.learn_rate]
@schedules = "{name}"
initial_rate = 0.01
warmup_steps = 2
{settings}
"""


def problems_of(schedule, **changes):
    changes = {f"training.{name}": value for name, value in changes.items()}
    config = re.sub(r"(?s)\[training\.optimizer.*?(?=\n\[(?!training\.optimizer)|\Z)", "", RANKER)
    return list(map(str, find_problems(Experiment.from_config(config + "\n" + schedule, changes))))


@pytest.mark.parametrize("name", ["thincdialog.WarmupLinear.v1", "warmup_linear.v1",
                                  "thincdialog.WarmupCosine.v1",
                                  "thincdialog.WarmupInverseSqrt.v1"])  # fmt: skip
def test_a_schedule_that_ends_at_0_before_the_last_step_is_refused(name):
    block = schedule(name, "total_steps = 9")
    (problem,) = problems_of(block, max_steps=10)
    assert re.match(r"config:\d+  \[training.optimizer.learn_rate\] total_steps = 9 is", problem)
    assert "[training] max_steps = 10" in problem and "${training.max_steps}" in problem
    assert not problems_of(block, max_steps=9) and not problems_of(block, max_steps=0)
    assert not problems_of(schedule(name, "total_steps = ${training.max_steps}"), max_steps=10)


def test_a_schedule_that_ends_above_0_may_end_early():
    cosine = "total_steps = 9\nfinal_share = 0.1"
    assert not problems_of(schedule("thincdialog.WarmupCosine.v1", cosine), max_steps=10)
    assert not problems_of(schedule("thincdialog.WarmupInverseSqrt.v1", ""), max_steps=10)


def test_a_schedule_within_another_one_is_checked():
    inner = schedule("thincdialog.WarmupLinear.v1", "total_steps = 9")
    block = inner.replace("optimizer.learn_rate]", "optimizer.learn_rate.learn_rate]").replace(
        '"Adam.v1"\n', '"Adam.v1"\n\n[training.optimizer.learn_rate]\n'
        '@schedules = "thincdialog.Plateau.v1"\n',
    )  # fmt: skip
    (problem,) = problems_of(block, max_steps=10, score="mrr")
    assert "[training.optimizer.learn_rate.learn_rate] total_steps = 9" in problem
