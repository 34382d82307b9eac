"""``train`` saves the model in output/<config name>, or in the folder given by --output."""

import pytest

from tests.cli.conftest import CONFIG

QUICK = "--training.max_steps 2 --training.n_samples 0"


def test_train_saves_to_the_name_of_its_config_and_says_so_first(run_small, tmp_path):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "my.ranker.cfg").write_text(CONFIG)
    code, out, err = run_small(f"train configs/my.ranker.cfg {QUICK}")
    assert code == 0 and err.splitlines()[0] == "Saving to output/my.ranker"
    assert "✔ Saved output/my.ranker/model-best" in err.splitlines()
    assert (tmp_path / "output" / "my.ranker" / "model-best" / "meta.json").is_file()
    code, _, err = run_small(f"train a.cfg -o here {QUICK}")
    assert code == 0 and err.splitlines()[0] == "Saving to here"
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"a.cfg", "configs", "here", "output"}


def test_train_again_is_an_error_whose_hints_work(run_small, tmp_path):
    assert run_small(f"train a.cfg {QUICK}")[0] == 0
    full = (
        "✘ output/a  is not empty. Choose another folder with --output, resume its run "
        "with --resume, or replace it with --force.\n"
    )
    assert run_small(f"train a.cfg {QUICK}") == (1, "", full)
    assert run_small(f"train a.cfg --dry-run --output output/a {QUICK}") == (1, "", full)
    assert run_small(f"train a.cfg --dry-run {QUICK}")[0] == 0  # Writes nothing.
    code, _, err = run_small("train a.cfg --resume --training.max_steps 4 --training.n_samples 0")
    assert code == 0 and err.splitlines()[0] == "Resuming from output/a/checkpoint-2."
    assert "Saving to output/a" in err.splitlines()
    code, _, err = run_small(f"train a.cfg --force {QUICK}")
    assert code == 0 and err.splitlines()[0] == "Saving to output/a"
    assert [path.name for path in (tmp_path / "output" / "a").glob("checkpoint-*4")] == []


def test_train_resumes_a_run_that_never_began(run_small):
    code, _, err = run_small(f"train a.cfg --resume {QUICK}")
    assert code == 0 and "There is no checkpoint in output/a: starting from scratch." in err


def test_train_without_output_saves_nothing(run_small, tmp_path):
    code, out, err = run_small(f"train a.cfg --no-output {QUICK}")
    assert code == 0 and "Saving to" not in err and "Saved" not in err
    assert err.splitlines()[-1] == "ℹ The model was not kept, because of --no-output."
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]


@pytest.mark.parametrize("other", ["--output there", "--resume", "--force", "--force --dry-run"])
def test_train_without_output_takes_no_option_about_it(run_small, tmp_path, other):
    said = "✘ --no-output saves nothing: leave out --output, --force and --resume\n"
    assert run_small(f"train a.cfg --no-output {other}") == (2, "", said)
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]


def test_train_that_cannot_begin_leaves_no_folder(run_small, tmp_path):
    code, _, err = run_small("train a.cfg --training.max_stepz 3")
    assert code == 1 and err.startswith("✘ 1 problem in a.cfg") and "Saving" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.cfg"]
