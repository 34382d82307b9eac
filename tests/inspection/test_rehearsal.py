"""Custom loggers, callbacks and mutators are tried without data, and leave nothing."""

import re

import pytest

from tests.test_contract import HEAD, builds, write
from tests.test_contract import folder as folder_fixture
from tests.test_contract import run as run

folder = folder_fixture
LOGGER = """
def setup(run, stdout, stderr):
    {setup}

    def log_step(info):
        if info is not None:
            {row}

    def finalize():
        {end}

    return log_step, finalize
"""


def logger(setup="pass", row="pass", end="pass"):
    return builds("loggers", "setup", LOGGER.format(setup=setup, row=row, end=end))


def debugged(run, folder):
    exit_code, _, err = run("debug config my.cfg --code code.py")
    # Keep Python from caching the bytecode of code.py.
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"code.py", "my.cfg"}
    assert "Traceback" not in err
    return exit_code, err


@pytest.mark.parametrize(
    "parts, said",
    [
        ({"row": "info['foo']"}, r"in log_step\(\): KeyError: 'foo'"),
        # At step 0 there are no training losses yet.
        ({"row": "'%.3f' % info['loss_per_example']"}, r"in log_step\(\): TypeError: must be real"),
        ({"end": "foo()"}, r"in finalize\(\): NameError"),
        ({"setup": "open('logs/a.txt', 'w').close()", "row": "foo()"}, r"in log_step\(\): NameE"),
        ({"setup": "open(run.output + '/a', 'w').close()", "row": "foo()"}, r"in log_step\(\): Na"),
    ],
)
def test_loggers_that_fail_are_reported(run, folder, parts, said):
    write(folder, *logger(**parts))
    exit_code, err = debugged(run, folder)
    assert (
        exit_code == 1
        and re.search(rf"\[training.logger\] \S*code.py:\d+  {said}", err)
        or (re.search(rf"\[training.logger\] .*code.py:\d+  in log_step\(\): {said}", err))
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"setup": "open('a.txt', 'w').close()", "row": "stdout.write(str(info['score']))"},
        {"row": "stdout.write(str(info['scores']['task/any']))"},
        # The trial stops before anything would be written or sent.
        {"setup": "open('{outside}', 'w')", "row": "info['foo']"},
        {"setup": "__import__('socket').create_connection(('127.0.0.1', 9))", "row": "info['x']"},
    ],
)
def test_loggers_that_do_their_work_are_left_alone(run, folder, parts, tmp_path_factory):
    outside = tmp_path_factory.mktemp("elsewhere") / "a.txt"
    parts = {name: text.replace("{outside}", str(outside)) for name, text in parts.items()}
    write(folder, *logger(**parts))
    assert debugged(run, folder) == (0, "✔ my.cfg: no problems found\n")
    assert not outside.exists()


def test_loggers_within_others_are_tried(run, folder):
    write(folder, *logger(row="info['foo']"))
    text = (folder / "my.cfg").read_text()
    chain = '@loggers = "thincdialog.Chain.v1"\n\n[training.logger.*.own]\n'
    (folder / "my.cfg").write_text(text.replace("@loggers = ", f"{chain}@loggers = "))
    exit_code, err = debugged(run, folder)
    assert exit_code == 1 and "[training.logger.*.own] " in err and "KeyError: 'foo'" in err


@pytest.mark.parametrize(
    "callback, said",
    [
        ("agent.foo", r"AttributeError: .*'foo'"),
        ("info['scores']['any'] > 1", ""),
        ("open('a.txt', 'w').close()", ""),
    ],
)
def test_callbacks_are_tried(run, folder, callback, said):
    write(folder, *builds("callbacks", f"lambda info, agent: {callback}"))
    exit_code, err = debugged(run, folder)
    assert exit_code == bool(said) and re.search(said, err)


@pytest.mark.parametrize(
    "body, said",
    [
        ("return None", r"code.py:\d+  mutate\(\) returned 'None'"),
        (
            "return [[Message(m, text=5) for m in episode]]",
            r"returned among others .*text': 5",
        ),
        ("return [[Message(text='a')]]", r"with an id \(text: a string"),
        ("return episode.foo", r"code.py:\d+  in mutate\(\): AttributeError"),
        # Made-up texts lack the features of real data.
        ("return [[Message(m, text=m['persona']) for m in episode]]", ""),
        ("return [episode]", ""),
    ],
)
def test_mutators_are_tried(run, folder, body, said):
    write(folder, "teachers", "")
    code = HEAD.replace("def lights()", "def lights(mutators=None)")
    code = code.replace('"dev": rows})', '"dev": rows}, mutators=mutators)')
    name = f"test_contract.{folder.name}.v1"
    own = f"\n\ndef mutate(episode):\n    {body}\n\n\n"
    code += f'{own}@registry.mutators("{name}")\ndef build():\n    return mutate\n'
    (folder / "code.py").write_text(code)
    text = (folder / "my.cfg").read_text().replace(f'@teachers = "{name}"', TEACHER.format(name))
    (folder / "my.cfg").write_text(text)
    exit_code, err = debugged(run, folder)
    assert exit_code == bool(said) and re.search(said, err)


TEACHER = """@teachers = "test_contract.Lights.v1"

[tasks.lights.mutators.*.own]
@mutators = "{}"
"""
