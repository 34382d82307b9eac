"""A command does not overwrite the files that it reads."""

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
    assert run("train m.cfg -o out")[0] == 0
    return tmp_path


OF_OUT = "belongs to out, which this command reads"
NAMED = "is named in out/config.cfg"


@pytest.mark.parametrize(
    "command, target, said",
    [
        ("evaluate out --predictions", "test.jsonl", NAMED),
        ("evaluate out --json", "./train.jsonl", NAMED),
        ("evaluate out --paths.test other.jsonl --json", "other.jsonl", "is read by this command"),
        (
            """evaluate out --tasks.moods.test '["other.jsonl"]' --json""",
            "other.jsonl",
            "is read by this command",
        ),
        ("evaluate out --code own.py --json", "own.py", "is read by this command"),
        ("evaluate out --json", "out/scores.json", OF_OUT),
        ("evaluate out/model-best --json", "out/model-best/meta.json", "belongs to out/model-best"),
        ("evaluate out --confusion-png", "out/log.jsonl", OF_OUT),
        ("compare out out/model-last --json", "out/config.cfg", OF_OUT),
        ("plot out --png", "out/log.jsonl", OF_OUT),
        ("predict out test.jsonl -o", "test.jsonl", "is read by this command"),
        ("predict out test.jsonl -o", "train.jsonl", NAMED),
        ("find-lr m.cfg --png", "m.cfg", "is read by this command"),
        ("find-lr m.cfg --png", "train.jsonl", "is named in m.cfg"),
        ("evaluate out --json new.json --predictions", "new.json", "is named twice"),
    ],
)
def test_no_command_writes_onto_what_it_reads(run, folder, command, target, said):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, _, err = run(f"{command} {target} --force")
    assert code == 1 and err.startswith(f"✘ {target}  {said}"), err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_of_others_in_a_runs_folder_are_replaced(run, folder):
    (folder / "out" / "mine.json").write_text("old")
    assert run("evaluate out --json out/mine.json --force")[0] == 0
    assert "accuracy" in (folder / "out" / "mine.json").read_text()
