"""Config files with any content lead to problems with positions, or to a config that can be
built."""

import random
import resource
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.examples import GOOD
from tests.fuzzing import SEED, TIMES, mangle, within_time
from tests.processes import slow
from thincdialog.api import ConfigError
from thincdialog.config import check_config, load_config, shipped_configs

CONFIGS = [GOOD.encode(), *(path.read_bytes() for path in shipped_configs().values())]


def check(path, content):
    """Check that reading a file reports problems, and raises no other exception."""
    path.write_bytes(content)
    try:
        load_config(path)
    except ConfigError as error:
        assert error.problems and error.path == str(path)
        assert all(len(str(problem)) < 4000 for problem in error.problems)
    problems = check_config(path)
    for problem in problems:
        assert problem.text and (not problem.where or problem.where.startswith(str(path)))
        assert "\n" not in str(problem)


def check_many(path, seed, n):
    """Check many damaged configs."""
    chance = random.Random(seed)
    for number in range(n):
        content = mangle(chance.choice(CONFIGS), chance)
        try:
            within_time(partial(check, path, content))
        except BaseException:
            sys.stderr.write(f"{number} {content[:3000]!r}\n")
            raise


def test_damaged_configs_give_problems(tmp_path):
    check_many(tmp_path / "damaged.cfg", 0, 40)


@pytest.mark.slow
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8")))
def test_random_bytes_give_problems(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "random.cfg"
    within_time(lambda: check(path, content))


def in_paths(text):
    return GOOD.replace("train = null", "train = null\n" + text)


def in_a_row(n, form, last=""):
    """Repeat ``form`` with each number of a range and the next one."""
    return in_paths("\n".join([*(form.format(k, k + 1) for k in range(n)), last]))


DEEP, GROWS = "nested more than 50 deep", "makes the config exceed"
HUGE = {
    "list": (in_paths("x = " + "[" * 100_000), DEEP),
    "closed list": (in_paths("x = " + "[" * 900 + "]" * 900), DEEP),
    "argument": (GOOD.replace("= 4", "= " + '{"a":' * 60 + "1" + "}" * 60, 1), DEEP),
    "section": (GOOD + f"\n[{'.'.join('a' * 5000)}]\nx = 1\n", DEEP),
    "chain": (in_a_row(5000, "v{} = ${{paths.v{}}}", 'v5000 = "x"'), "through more than 100 other"),
    "text": (in_a_row(40, "v{0} = ${{paths.v{1}}}${{paths.v{1}}}", "v40 = xxxx"), GROWS),
    "values": (in_a_row(40, "v{0} = [${{paths.v{1}}}, ${{paths.v{1}}}]", "v40 = 1"), GROWS),
    "sections": (in_a_row(40, "[s{0}]\na = ${{s{1}}}\nb = ${{s{1}}}", "[s40]"), GROWS),
    "circle": (in_paths("x = ${paths}"), "leads back to itself"),
    "blanks": (in_paths("x" + " " * 200_000 + "y"), "neither a [section] nor"),
    "quotes": (in_paths("x = " + '"\\' * 100_000), "is not JSON"),
    "variables": (in_paths('x = "' + "${a" * 100_000 + '"'), "lone '$'"),
    "unknown variables": (in_a_row(2000, "k{} = ${{paths.q{}}}"), "not defined"),
    "lines": (in_paths("x =\n" + "    y\n" * 100_000), "continues the value above"),
    "name": (GOOD.replace("max_steps", "max_stepz" * 20_000), "has no setting"),
    "number": (GOOD.replace("width = 8", "width = " + "1" * 4000), "write a number of at most"),
    "half a character": (in_paths('x = "\\ud800"'), "half of a character"),
    "file": ("[paths]\n" + "# comment\n" * 500_000, "larger than 4,000,000 bytes"),
}


SLOW = {"values", "sections", "unknown variables"}


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in HUGE])
def test_huge_configs_take_no_time(tmp_path, name):
    text, words = HUGE[name]
    path = tmp_path / "huge.cfg"
    path.write_text(text)

    def run():
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        problems = caught.value.problems
        assert any(words in str(problem) for problem in problems), str(problems)[:2000]

    within_time(run)


def test_values_from_python_are_checked_like_those_of_files():
    for value, words in ((2**70, "at most 9,223,"), ("\ud800", "half of a char")):
        assert words in str(check_config(GOOD, {"training.score": value})[0])
    nested = {}
    for _ in range(3000):
        nested = {"a": nested}
    with pytest.raises(ConfigError, match="nested too deep"):
        load_config({"agent": nested})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does")
def test_many_damaged_configs_in_little_memory(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (1 << 30), before[1]))
    try:
        check_many(tmp_path / "damaged.cfg", SEED, 300 * TIMES)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
