"""The card of a saved model describes the model, and contains nothing about the machine."""

import shutil

import pytest
from thinc.api import Config

from tests.examples.talk import write_spoken
from tests.processes import limited
from tests.training.examples import RANKER, REPLIES, TALKS, quietly_train
from tests.training.two_tasks import TWO_TASKS
from thincdialog.api import evaluate_in_detail
from thincdialog.cli.main import main
from thincdialog.config.shipped import shipped_configs
from thincdialog.runs.model_card import card

CHANCE = '\n[baselines.chance]\n@agents = "thincdialog.RandomCandidate.v1"\n'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quietly_train(RANKER + CHANCE, tmp_path_factory.mktemp("run"))[0]


def rows(text):
    """Split all lines of tables into cells."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]


def test_model_card_has_scores_and_baselines(run):
    best = run.output / "model-best"
    text = (best / "README.md").read_text()
    for split in ("dev", "test"):
        part = text.partition(f"### {split}: ")[2].partition("###")[0]
        assert part.startswith(f"{run.scores[split]['examples']:.0f} examples\n")
        value, chance = run.scores[split]["hits@1"], run.baselines["chance"][split]["hits@1"]
        assert rows(part)[4] == ["`hits@1`", f"{value:.4f}", f"{chance:.4f}"]


def test_model_card_gets_the_intervals_of_evaluate(run, tmp_path, capsys):
    model, found = tmp_path / "model", {}
    shutil.copytree(run.output / "model-best", model)
    before = (model / "README.md").read_text()
    for split in ("dev", "test", "dev"):
        assert main(["evaluate", str(model), "--split", split]) == 0
        assert f"Wrote the intervals into the model card of {model}" in capsys.readouterr().err
        found[split] = evaluate_in_detail(model, split=split)
    text = (model / "README.md").read_text()
    for split, evaluation in found.items():
        assert text.count(f"\n### {split}: 95 % intervals\n") == 1
        part = text.partition(f"### {split}: 95 %")[2].partition("\n##")[0]
        value, (low, high) = evaluation.scores["hits@1"], evaluation.intervals["hits@1"]
        shown = ["`hits@1`", f"{value:.4f}", f"{low:.4f} to {high:.4f}"]
        assert shown in rows(part) and low < value < high
        assert "over 10 conversations, drawn 1,000 times." in part
    first = min(text.index(f"\n### {split}: 95 %") for split in found)
    assert text[:first] + text[text.index("\n## Data\n") :] == before
    # Scores on other data are not those of the card.
    assert main(["evaluate", str(model), "--tasks.coffee.n_test", "9"]) == 0
    capsys.readouterr()
    with limited("RLIMIT_FSIZE", 0):  # A full disk, or a folder that cannot be written.
        assert main(["evaluate", str(model)]) == 0
    assert f"⚠ {model}/README.md  could not be written: " in capsys.readouterr().err
    assert (model / "README.md").read_text() == text
    (model / "README.md").unlink()
    assert main(["evaluate", str(model)]) == 0 and not (model / "README.md").exists()
    assert "model card" not in capsys.readouterr().err


def test_model_card_says_among_how_many_candidates_it_chose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev", "test"):
        write_spoken(tmp_path / f"{split}.jsonl", *["bot"] * 20)
    # Its 20 replies are 7 distinct ones.
    for wanted, n in ((5, 5), (100, 7)):
        changes = {"evaluation__n_candidates": wanted, "training__max_steps": 1}
        quietly_train(TALKS + REPLIES, tmp_path / str(n), **changes)
        text = (tmp_path / str(n) / "model-best" / "README.md").read_text()
        assert f"- In evaluation it chose among {n} candidates;" in text


def test_model_card_has_data_sizes_and_settings(run):
    text = (run.output / "model-best" / "README.md").read_text()
    n = [f"{run.train_examples['']:,}", *(f"{run.scores[s]['examples']:.0f}" for s in run.scores)]
    teacher = "`thincdialog.CoffeeOrder.v1`"
    expected = [["coffee", teacher, s, "", c] for s, c in zip(("train", "dev", "test"), n)]
    assert [row for row in rows(text) if row[:1] == ["coffee"]] == expected
    assert f"- {run.n_parameters:,} parameters (float32)\n" in text
    assert ["`training.optimizer.learn_rate`", "0.01"] in rows(text)
    assert "Ranks candidate replies: " in text and str(run.output) not in text


def test_model_card_says_whether_repeats_are_blocked_and_what_was_chosen_from(run, tmp_path):
    text = (run.output / "model-best" / "README.md").read_text()
    assert "- It avoids repeats: " in text and "eval_candidates" not in text
    settings = {"agent__block_repeats": False, "agent__eval_candidates": "fixed"}
    quietly_train(output=tmp_path, training__max_steps=1, **settings)
    text = (tmp_path / "model-best" / "README.md").read_text()
    assert "- It may repeat the message or an earlier turn" in text
    assert '- In evaluation its candidates were "fixed" (`eval_candidates`).' in text


def test_model_card_says_when_only_a_part_was_evaluated(tmp_path):
    few = {"evaluation__max_examples": 12, "training__max_steps": 1}
    result, _ = quietly_train(output=tmp_path, **few)
    text = (tmp_path / "model-best" / "README.md").read_text()
    cells = [row[-1] for row in rows(text) if row[:1] == ["coffee"]]
    scores = result.scores
    evaluated = [f"{scores[split]['examples']:.0f} evaluated" for split in ("dev", "test")]
    assert cells == [f"{result.train_examples['']}", *evaluated]


def test_model_card_of_a_model_in_the_making_has_its_dev_scores(run):
    text = (run.output / "model-last" / "README.md").read_text()
    assert "On the dev data, with these weights (step " in text and "### test" not in text
    assert "chat model-last\n" in text


def test_model_card_shows_how_to_load_it(run, monkeypatch, capsys):
    text = (run.output / "model-best" / "README.md").read_text()
    monkeypatch.chdir(run.output)
    exec(text.partition("```python\n")[2].partition("```")[0], {})
    assert capsys.readouterr().out.strip()


def test_model_card_of_two_tasks(tmp_path):
    result, _ = quietly_train(TWO_TASKS, tmp_path / "x", training__max_steps=2)
    text = (tmp_path / "x" / "model-best" / "README.md").read_text()
    shown = {row[0]: row for row in rows(text.partition("### test")[2]) if row}
    for name in ("hits@1", "macro/hits@1", "drinks/hits@1"):
        assert shown[f"`{name}`"][1:] == [f"{result.scores['test'][name]:.4f}"]
    assert ["drinks", "`tests.tiny.v1`", "test", "", "22"] in rows(text)


def test_model_card_names_files_without_folders(run, tmp_path):
    text = (run.output / "model-best" / "config.cfg").read_text()
    config = Config().from_str(text)
    config["tasks"]["coffee"]["train"] = ["/home/someone/a|b.txt", "c.txt"]
    config.to_disk(tmp_path / "config.cfg")
    (tmp_path / "meta.json").write_text("{}")
    shown = card(tmp_path)
    assert "`a\\|b.txt`, `c.txt`" in shown and "someone" not in shown
    assert "None were measured when it was saved." in shown


@pytest.mark.slow
def test_model_card_of_a_classifier_has_no_scores_of_the_words_of_class_names(tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f'{{"text": "{n} is", "label": "class {n % 2}"}}\n' for n in range(20)))
    paths = {f"paths.{split}": str(data) for split in ("train", "dev", "test")}
    short = {**paths, "training.max_steps": 1}
    found, _ = quietly_train(shipped_configs()["intent"], tmp_path / "x", **short)
    text = (tmp_path / "x" / "model-best" / "README.md").read_text()
    scores = rows(text.partition("### test")[2].partition("## Data")[0])
    names = {row[0] for row in scores if row}
    assert {"`accuracy`", "`macro_f1`", "`weighted_f1`", "`mrr`"} <= names
    assert not {"`precision`", "`recall`", "`f1`"} & names and "f1" in found.scores["test"]


OWN = """
from thincdialog.api import IterableTeacher, registry

@registry.teachers("card_data.v1")
def teacher():
    return IterableTeacher({"train": [("hello there", "hi"), ("why", "no")] * 4})

@registry.initializers("card_ones.v1")
def ones():
    return lambda ops, shape: ops.alloc(shape) + 1
"""


def test_code_is_named_where_it_is_needed(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    for is_needed in (False, True):
        config = f'[tasks.talk]\n@teachers = "card_data.v1"\n{REPLIES}'
        if is_needed:
            config += '\n[agent.model.encoder.init_W]\n@initializers = "card_ones.v1"\n'
        out = tmp_path / f"out{is_needed}"
        quietly_train(config, out, code=str(tmp_path / "own.py"), training__max_steps=1)
        lines = (out / "model-last" / "README.md").read_text().splitlines()
        more = " --code own.py" if is_needed else ""
        assert f"python -m thincdialog chat model-last{more}" in lines
        assert "python -m thincdialog evaluate model-last --code own.py" in lines
        loads = [line for line in lines if "thincdialog.load(" in line]
        assert ["code=" in line for line in loads] == [is_needed]
