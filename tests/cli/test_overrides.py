import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.cli.overrides import split_overrides


@pytest.mark.parametrize(
    "line, rest, found",
    [
        ("train x.cfg --a.b 3", ["train", "x.cfg"], {"a.b": "3"}),
        ("--a.b 3 train x.cfg", ["train", "x.cfg"], {"a.b": "3"}),
        ("train --a.b=3 x.cfg -o out", ["train", "x.cfg", "-o", "out"], {"a.b": "3"}),
        ("train x.cfg --a.b", ["train", "x.cfg"], {"a.b": "true"}),
        ("train --a.b --force x.cfg", ["train", "--force", "x.cfg"], {"a.b": "true"}),
        ("--a.b --c.d 1", [], {"a.b": "true", "c.d": "1"}),
        ("--a.b -1 --a.c -.5 --a.d -1e3", [], {"a.b": "-1", "a.c": "-.5", "a.d": "-1e3"}),
        ("--a.b -o x", ["-o", "x"], {"a.b": "true"}),
        ("--a.b=c=d --a.c=", [], {"a.b": "c=d", "a.c": ""}),
        ("--training.max-steps 3", [], {"training.max_steps": "3"}),
        ("--a.@b.c x.v1", [], {"a.@b.c": "x.v1"}),
        ("--a.b 1 --a.b 2", [], {"a.b": "2"}),
        ("--force -o x.y --code=my.file.py", ["--force", "-o", "x.y", "--code=my.file.py"], {}),
        ("--a.b 1 -- --c.d 2", ["--", "--c.d", "2"], {"a.b": "1"}),
    ],
)
def test_overrides_split(line, rest, found):
    assert split_overrides(line.split()) == (rest, found)


names = st.lists(st.text("abz", min_size=1), min_size=2, max_size=3).map(".".join)
words = st.one_of(
    st.text(min_size=1, max_size=5).filter(lambda text: not text.startswith("-")),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
)
others = st.lists(st.sampled_from(["x.cfg", "--force", "train"]), max_size=3)


@given(st.dictionaries(names, words, max_size=4), st.booleans(), others, st.randoms())
def test_overrides_are_found_in_any_position(wanted, equals, other, rng):
    groups = [[f"--{k}={v}"] if equals else [f"--{k}", v] for k, v in wanted.items()]
    groups += [[word] for word in other]
    rng.shuffle(groups)
    rest, found = split_overrides([word for group in groups for word in group])
    assert found == wanted
    assert sorted(rest) == sorted(other)
