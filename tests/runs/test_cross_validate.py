"""Cross-validation, compared with separate runs."""

import csv
import io
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.topics import CONFIG, write_topics
from tests.loader.test_starting import run_script
from tests.processes import left_over, start
from tests.training.examples import CLASSIFIER, REPLIES, TALKS, quietly_train, write_talks
from thincdialog.api import DataError, DialogError, Experiment, OutputError, cross_validate
from thincdialog.cli.main import main
from thincdialog.runs.cross_validate import CrossValidation, Fold, draw_folds, hold_out, run_fold

INTENTS = (
    '[paths]\ntrain = "train.jsonl"\ntest = null\n\n[tasks.intents]\n'
    '@teachers = "thincdialog.LabelledText.v1"\ntrain = ${paths.train}\ntest = ${paths.test}\n\n'
    "[training]\nmax_epochs = 2\nn_samples = 0\n" + CLASSIFIER
)
WORDS = {"greet": "hello hi", "leave": "bye later", "pay": "bill owe"}


def rows_of(n):
    """Make texts, some of which contain the words of another class."""
    mixed = " ".join(WORDS.values()).split()
    return [
        {"text": f"{words.split()[i % 2]} {mixed[(5 * i + k) % 6]} {i % 3}", "label": label}
        for i in range(n)
        for k, (label, words) in enumerate(WORDS.items())
    ]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.jsonl", rows_of(12))
    return tmp_path


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(2, 6))
def test_draw_folds_spreads_each_label_evenly(labels, n_folds):
    known = {str(n): label for n, label in enumerate(labels)}
    fold_of = draw_folds(known, n_folds)
    assert fold_of.keys() == known.keys() and fold_of == draw_folds(known, n_folds)
    for counted in ({*labels}, *({label} for label in labels)):
        counts = Counter(fold_of[name] for name in known if known[name] in counted)
        sizes = [counts[number] for number in range(n_folds)]
        assert sum(counts.values()) == sum(sizes) and max(sizes) - min(sizes) <= 1


@pytest.mark.slow
def test_cross_validation_is_the_mean_of_five_runs_made_by_hand(folder):
    rows = rows_of(12)
    # Ids of examples contain their line numbers.
    fold_of = draw_folds({str(n): row["label"] for n, row in enumerate(rows, 1)}, 5)
    by_hand, wrong = [], []
    for number in range(5):
        write(
            folder / "a.jsonl", (row for n, row in enumerate(rows, 1) if fold_of[str(n)] != number)
        )
        write(
            folder / "b.jsonl", (row for n, row in enumerate(rows, 1) if fold_of[str(n)] == number)
        )
        paths = {"paths__train": "a.jsonl", "paths__test": "b.jsonl"}
        by_hand.append(quietly_train(INTENTS, folder / str(number), **paths)[0].scores["test"])
        report = folder / "replies.jsonl"
        words = ["evaluate", f"{number}/model-best", "--predictions", str(report), "--force"]
        assert main(words) == 0
        lines = map(json.loads, report.read_text().splitlines())
        wrong += [(number + 1, line["text"]) for line in lines if not line["right"]]
    folds = [run_fold(io.StringIO(), INTENTS, {}, None, 5, None, number) for number in range(5)]
    found = CrossValidation(folds)
    assert [fold.scores for fold in folds] == by_hand
    for name, (mean, deviation) in found.scores.items():
        values = [scores[name] for scores in by_hand]
        assert (mean, deviation) == (statistics.fmean(values), statistics.stdev(values))
    assert [(row["fold"], row["text"]) for fold in folds for row in fold.wrong] == wrong != []
    assert sum(found.confusion.counts.values()) == 36
    by_class = found.confusion.by_class()
    assert {name: scores.support for name, scores in by_class.items()} == dict.fromkeys(WORDS, 12)


def test_cross_validation_keeps_conversations_together(folder):
    # Each conversation is two examples, one for each side.
    write_talks(folder / "train.jsonl", [(f"say {n}", f"reply {n}") for n in range(11)])
    config = TALKS.replace('dev = "dev.jsonl"', "dev = null").replace('"test.jsonl"', "null")
    config += 'label_speaker = "both"\n' + REPLIES
    tested = []
    for number in range(3):
        experiment = Experiment.from_config(config)
        with experiment.working():
            hold_out(experiment, number, 3)
            task = experiment.tasks["talk"]
            train, test = (
                [turn["labels"][0] for each in task.data[split].episodes() for turn in each]
                for split in ("train", "test")
            )
        assert not {label.split()[1] for label in train} & {label.split()[1] for label in test}
        assert len(train) + len(test) == 22
        tested += test
    assert len(set(tested)) == len(tested) == 22


def test_cross_validation_refuses_impossible_settings(folder, capsys):
    for folds in (1, 37):
        with pytest.raises(DataError, match=f"has 36 .* 2 to as many folds, and not {folds}"):
            cross_validate(INTENTS, folds=folds)
    with pytest.raises(DialogError, match="chooses thresholds on dev data, but there is none"):
        cross_validate(INTENTS, overrides={"agent.threshold": "precision:0.9"})
    (folder / "out").mkdir()
    (folder / "out" / "a.txt").touch()
    with pytest.raises(OutputError, match=r"out  is not empty. Choose another [a-z ]+ --output\.$"):
        cross_validate(INTENTS, output="out")
    (folder / "i.cfg").write_text(INTENTS)
    for n in (0, 1):
        assert main(f"cross-validate i.cfg --folds {n}".split()) == 2
        assert f"should be an integer, 2 or more, got {n}" in capsys.readouterr().err


def test_folds_test_no_task_without_training_data(folder):
    write(folder / "other.jsonl", rows_of(2))
    text = f'{INTENTS}\n[tasks.other]\n@teachers = "thincdialog.LabelledText.v1"\n'
    experiment = Experiment.from_config(text + 'test = "other.jsonl"\n')
    with experiment.working():
        hold_out(experiment, 0, 3)
        assert experiment.evaluation_split("test").n_examples == 12


def test_scores_are_those_that_all_good_folds_have():
    scores = [{"a": 1.0, "b": 1.0}, {"a": 0.0}]
    found = CrossValidation([*(Fold(scores=each) for each in scores), Fold("failed")]).scores
    assert found == {"a": (0.5, statistics.stdev([1.0, 0.0]))}


@pytest.mark.slow
def test_cross_validation_of_a_ranker_in_processes_is_the_same(folder):
    write_talks(folder / "train.jsonl", [(f"say {n}", f"reply {n % 3}") for n in range(9)])
    config = TALKS.replace('dev = "dev.jsonl"', "dev = null").replace('"test.jsonl"', "null")
    config += REPLIES + "\n[training]\nmax_epochs = 1\nn_samples = 0\n"
    told = []
    options = {"folds": 3, "jobs": 2, "output": "out", "done": lambda *fold: told.append(fold)}
    found = cross_validate(config, **options)
    here = [run_fold(io.StringIO(), config, {}, None, 3, None, number) for number in range(3)]
    for one, two in zip(found.folds, here, strict=True):
        assert (one.error, one.scores, one.wrong) == ("", two.scores, two.wrong)
    assert told == list(enumerate(found.folds, 1))
    assert found.scores["hits@1"][0] > 0 and not found.confusion.counts
    kept = sorted(path.name for path in (folder / "out").iterdir())
    assert kept == ["fold-1", "fold-2", "fold-3"]
    assert (folder / "out" / "fold-3" / "model-best" / "meta.json").is_file()


@pytest.mark.slow
def test_cross_validate_continues_if_a_fold_fails(folder, capsys):
    rows = [*rows_of(6), {"text": "moon", "label": "odd"}]
    # Without the only example of "odd", one class is left to train on.
    rows = [row for row in rows if row["label"] in ("greet", "odd")]
    write(folder / "train.jsonl", [*rows, {"text": "no label"}])
    (folder / "i.cfg").write_text(INTENTS)
    before = sorted(folder.iterdir())
    words = "--tasks.intents.on_bad_data skip --tasks.intents.max_bad_share 0.2"
    code = main(f"cross-validate i.cfg --folds 3 -j 2 --errors wrong.csv {words}".split())
    out, err = capsys.readouterr()
    assert code == 1 and err.count("only one class, 'greet'") == err.count("failed:") == 1
    # The row that the fold logged before it failed is not lost.
    assert err.count("In 3 folds: train.jsonl  1 of 8") == 1
    assert "accuracy" in out and "deviation" in out
    assert sorted(folder.iterdir()) == sorted([*before, folder / "wrong.csv"])
    rows = list(csv.DictReader((folder / "wrong.csv").read_text().splitlines()))
    assert all(row["reply"] != row["labels"] for row in rows)


@pytest.mark.slow
def test_cross_validate_writes_classes_as_json_and_each_note_once(folder, capsys):
    with (folder / "train.jsonl").open("a") as file:
        file.write('{"text": "no label"}\n')
    (folder / "i.cfg").write_text(INTENTS)
    words = "--tasks.intents.on_bad_data skip --tasks.intents.max_bad_share 0.1"
    assert main(f"cross-validate i.cfg --folds 2 --json {words}".split()) == 0
    out, err = capsys.readouterr()
    assert err.count("In 2 folds: train.jsonl  1 of 37") == err.count("train.jsonl:37") == 1
    found = json.loads(out)
    assert {name: row["support"] for name, row in found["classes"].items()} == dict.fromkeys(
        WORDS, 12
    )
    assert sum(n for *_, n in found["confusion"]) == 36
    right = sum(n for label, reply, n in found["confusion"] if label == reply)
    assert right == sum(
        fold["scores"]["accuracy"] * fold["scores"]["examples"] for fold in found["folds"]
    )


@pytest.mark.slow
def test_cross_validation_of_sets_of_labels_has_no_pairs_of_classes(folder, capsys):
    write_topics(folder)
    (folder / "t.cfg").write_text(CONFIG)
    words = "cross-validate t.cfg --folds 2 -j 2 --training.max_epochs 1 --agent.threshold 0.3"
    assert main([*words.split(), "--errors", "wrong.csv"]) == 0
    out = capsys.readouterr().out
    assert "micro_f1" in out and "replied" not in out
    rows = list(csv.DictReader((folder / "wrong.csv").read_text().splitlines()))
    # Superfluous labels and missed labels; each side is joined in the same way.
    assert any("|" in row["reply"] for row in rows) and any("|" in row["labels"] for row in rows)
    assert all(set(row["reply"].split("|")) != set(row["labels"].split("|")) for row in rows)


@pytest.mark.slow
def test_errors_of_folds_without_any_are_a_table_with_a_header(folder):
    write(folder / "train.jsonl", [{"text": name, "label": name} for name in "abab" * 5])
    (folder / "i.cfg").write_text(INTENTS)
    words = "cross-validate i.cfg --folds 2 --training.max_epochs 30 --errors wrong.csv"
    assert main(words.split()) == 0
    assert (folder / "wrong.csv").read_text().split() == ["fold,task,id,text,reply,score,labels"]


@pytest.mark.slow
def test_ctrl_c_ends_folds_that_just_start_without_a_traceback(folder):
    (folder / "i.cfg").write_text(INTENTS)
    words = [sys.executable, "-m", "thincdialog", "cross-validate", "i.cfg", "-j", "2"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task")
        # The first process is Python's resource tracker.
        while len("".join(each.read_text() for each in children.glob("*/children")).split()) < 2:
            time.sleep(0.01)
        time.sleep(0.2)  # Python has started to import the program.
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert b"Interrupted" in err and b"Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_ends_the_processes_of_folds(folder, number, code):
    (folder / "i.cfg").write_text(INTENTS)
    words = "cross-validate i.cfg --folds 2 -j 2 -o out --training.max_epochs 100000".split()
    with start(folder, *words, start_new_session=True) as process:
        while len([*folder.glob("out/*/log.jsonl")]) < 2:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(10) == code
    assert left_over(process.pid) == []


@pytest.mark.slow
def test_folds_refuse_worker_processes(folder):
    changes = {"runner.@runners": "thincdialog.Hogwild.v1", "runner.executor": "process"}
    found = cross_validate(INTENTS, folds=2, jobs=2, overrides=changes)
    for fold in found.folds:
        assert re.match(r"\[runner\] worker processes .* cannot train on folds: set", fold.error)
    changes["runner.executor"] = "thread"
    assert not cross_validate(INTENTS, folds=2, jobs=2, overrides=changes).folds[0].error


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_reported(folder, root):
    script = "from thincdialog.api import cross_validate\n"
    config = "# A long config.\n" * 10_000 + INTENTS  # Larger than a pipe.
    script += f"folds = cross_validate({config!r}, folds=2).folds\nprint(folds[1].error)"
    done = run_script(folder, root, script)
    assert "exit code 1 before it could start" in done.stdout
    assert 'under `if __name__ == "__main__":`, or use the command cross-validate' in done.stdout
    assert "cross_validate() was used while a worker was importing the script" in done.stderr
