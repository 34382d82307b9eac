"""The command ``convert``."""

import gzip
import json
import os
import shlex
import subprocess
import sys

import pytest

from thincdialog.cli.convert import TO
from thincdialog.formats.convert import WRITERS


def test_convert_says_what_it_took_the_file_for_and_what_it_left(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    turns = [{"speaker": who, "text": f"{who} speaks"} for who in "ABA"]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "1", "turns": turns}))
    code, out, err = run("convert in.jsonl out.txt --to parlai")
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert lines[0].endswith("in.jsonl looks like conversations; if not, set --from")
    assert "Left out: names of speakers; turns without an answer" in lines[1]
    assert lines[2].endswith("out.txt: 1 episode, 1 example, as parlai")
    expected = "id:1/0\ttext:A speaks\tlabels:B speaks\tepisode_done:True\n"
    assert (tmp_path / "out.txt").read_text() == expected
    code, _, err = run("convert in.jsonl out.txt --to parlai")
    assert code == 1 and "out.txt  already exists" in err
    code, _, err = run("convert in.jsonl out.txt --to parlai --from conversations --force")
    assert code == 0 and "looks like" not in err


def test_convert_skips_and_drops_if_asked(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = [{"body": "a", "kind": "x", "n": "1"}, {"body": "b\\tc", "kind": "y", "n": "2"}]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = "convert in.jsonl out.txt --from jsonl --text-field body --label-field kind"
    command += " --to parlai"
    for more, code, said in (
        ("--drop n", 1, "example '2/0' does not fit"),
        (
            "--drop n --skip",
            0,
            "1 of 2 examples skipped (50.0 %):\n  in.jsonl  example '2/0' does not fit",
        ),
    ):
        found, _, err = run(f"{command} {more}")
        assert found == code and said in err
    assert (tmp_path / "out.txt").read_text() == "text:a\tlabels:x\tepisode_done:True\n"
    with open(tmp_path / "in.jsonl", "a") as file:
        file.write("\nno JSON\n")
    code, _, err = run(f"{command} --drop n --skip --force")
    assert code == 0 and "in.jsonl  2 of 3 examples skipped (66.7 %):\n" in err
    assert "  in.jsonl  example '2/0' does not fit" in err
    assert "  in.jsonl:3  not valid JSON" in err


@pytest.mark.parametrize("force", ["", " --force"])
@pytest.mark.parametrize(
    "source, target, options",
    [
        ("in.jsonl", "in.jsonl", ""),
        ("in.jsonl", "./sub/../in.jsonl", ""),
        ("in.jsonl", "{folder}/in.jsonl", ""),
        ("in.jsonl", "link.jsonl", ""),
        ("link.jsonl", "in.jsonl", ""),
        ("in.jsonl", "linked/in.jsonl", ""),
        ("in.jsonl", "same.jsonl", ""),
        ("in.jsonl.gz", "in.jsonl.gz", ""),
        ("rows.json", "own.yml", "--from own.yml"),
    ],
)
def test_convert_never_writes_onto_what_it_reads(
    tmp_path, monkeypatch, run, source, target, options, force
):
    monkeypatch.chdir(tmp_path)
    turns = [{"speaker": who, "text": f"{who} speaks"} for who in "AB"]
    line = json.dumps({"id": "1", "turns": turns}) + "\n"
    (tmp_path / "in.jsonl").write_text(line)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    (tmp_path / "rows.json").write_text(json.dumps([{"q": "a", "r": "b"}]))
    (tmp_path / "own.yml").write_text("text: q\nlabel: r\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    os.link("in.jsonl", "same.jsonl")
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    target = target.format(folder=tmp_path)
    code, _, err = run(f"convert {source} {target} {options} --to parlai{force}")
    assert code == 1 and f"{target}  is read by this command" in err
    assert "--force" not in err and "Choose another name." in err
    assert {path: path.read_bytes() for path in files} == before
    assert run(f"convert {source} out/new.txt {options} --to parlai{force}")[0] == 0


def test_convert_help_names_all_formats_to_write():
    assert TO.split(", ") == list(WRITERS)


def test_convert_with_no_room_leaves_nothing(tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("text:a\tlabels:b\tepisode_done:True\n" * 20000)
    command = [sys.executable, "-m", "thincdialog", "convert", str(source), str(target)]
    command += ["--to", "jsonl"]
    limited = f"ulimit -f 16; trap '' XFSZ; exec {shlex.join(command)}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "out.jsonl  cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == [source]
