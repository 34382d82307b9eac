"""A command does not overwrite the files that its command line names as inputs."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = [f'{{"text": "{mood} {n}", "label": "{mood}"}}\n' for n in range(9) for mood in "abc"]
    for name in ("train", "test", "other"):
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    (tmp_path / "m.cfg").write_text(
        '[tasks.moods]\n@teachers = "thincdialog.LabelledText.v1"\ntrain = ["train.jsonl"]\n'
        'test = "test.jsonl"\n\n[agent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    )
    (tmp_path / "own.py").write_text("A = 1\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.jsonl").write_text('{"text": "a 1"}\n')
    assert run("train m.cfg -o out")[0] == 0
    return tmp_path


@pytest.mark.parametrize(
    "command, target, said",
    [
        ("evaluate out --paths.test other.jsonl --json", "other.jsonl", "is read by this command"),
        ("evaluate out --code own.py --json", "own.py", "is read by this command"),
        ("predict out test.jsonl -o", "./test.jsonl", "is read by this command, as test.jsonl"),
        ("predict out data -o", "data/in.jsonl", "is read by this command"),
        ("find-lr m.cfg --png", "m.cfg", "is read by this command"),
        ("evaluate out --json new.json --predictions", "new.json", "is named twice"),
    ],
)
def test_no_command_overwrites_an_input_that_it_names(run, folder, command, target, said):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, _, err = run(f"{command} {target} --force")
    assert code == 1 and err.startswith(f"✘ {target}  {said}"), err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_of_others_in_a_runs_folder_are_replaced(run, folder):
    (folder / "out" / "mine.json").write_text("old")
    assert run("evaluate out --json out/mine.json --force")[0] == 0
    assert "accuracy" in (folder / "out" / "mine.json").read_text()
