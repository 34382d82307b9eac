"""The values that a sweep tries, and the names of its runs."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.errors import ConfigError
from thincdialog.runs.sweep_values import Range, grid, read_choices, run_name, sample


def test_sweep_grid_has_every_combination_once():
    choices = read_choices({"a.b": [1, 2, 1], "a.c": ["x", "y", "z"]}, is_random=False)
    found = grid(choices)
    assert len(found) == 6 and found[:2] == [{"a.b": 1, "a.c": "x"}, {"a.b": 1, "a.c": "y"}]
    assert len({tuple(chosen.values()) for chosen in found}) == 6


@pytest.mark.parametrize(
    "text, message",
    [
        ("log:0..1", "should begin above 0"),
        ("uniform:3..1", "from a lower to a higher number"),
        ("uniform:a..1", "bounds that are not numbers"),
        ("int:0.5..2", "whole numbers as bounds"),
        ("log:5", "neither a list of values nor a range"),
        ("uniform:0..inf", "from a lower to a higher"),
    ],
)
def test_sweep_bad_ranges(text, message):
    with pytest.raises(ConfigError, match=message):
        read_choices({"a.b": text}, is_random=True)


def test_sweep_reports_all_problems_at_once():
    with pytest.raises(ConfigError) as caught:
        read_choices({"a.b": "log:0..1", "a.c": [], "a.d": "int:1..2"}, is_random=False)
    assert len(caught.value.problems) == 3
    assert "--random N" in str(caught.value)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_sweep_sample_is_within_bounds_different_and_grows_at_its_end(seed, n):
    over = {"a.r": "log:1e-4..1e-1", "a.u": "uniform:0.25..0.5", "a.i": "int:1..3", "a.l": [1, 2]}
    choices = read_choices(over, is_random=True)
    found = sample(choices, n, seed)
    assert len(found) == n == len({json.dumps(chosen) for chosen in found})
    assert sample(choices, n + 3, seed)[:n] == found
    for chosen in found:
        assert 1e-4 <= chosen["a.r"] <= 1e-1 and 0.25 <= chosen["a.u"] <= 0.5
        assert chosen["a.i"] in (1, 2, 3) and chosen["a.l"] in (1, 2)
        assert len(f"{chosen['a.r']:g}") <= 8


def test_sweep_sample_takes_both_bounds_and_ends_when_there_are_no_more():
    choices = read_choices({"a.i": "int:1..3", "a.l": [1, 2]}, is_random=True)
    found = sample(choices, 50, 0)
    assert {tuple(chosen.values()) for chosen in found} == {
        (i, x) for i in (1, 2, 3) for x in (1, 2)
    }
    assert Range("int", 1.0, 3.0).bounds() == [1, 3]


def test_sweep_run_names_are_short_readable_and_fit_for_folders():
    names = ["training.optimizer.learn_rate", "agent.model.encoder.width"]
    chosen = {names[0]: 0.001, names[1]: "64"}
    assert run_name(chosen, names) == "learn_rate=0.001,width=64"
    names = ["a.encoder.width", "b.encoder.width", "a.other.x"]
    assert run_name(dict.fromkeys(names, 1), names) == "a.encoder.width=1,b.encoder.width=1,x=1"
    assert "/" not in run_name({"paths.train": "data/a b.jsonl"}, ["paths.train"])
    assert run_name({"a.@layers": "my.v1"}, ["a.@layers"]) == "layers=my.v1"


@settings(max_examples=100)
@given(st.lists(st.one_of(st.text(max_size=60), st.integers(), st.floats(allow_nan=False),
                          st.lists(st.integers(), max_size=3)), unique_by=json.dumps, min_size=2,
                max_size=6))  # fmt: skip
def test_sweep_different_values_have_different_folders(values):
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    names = [run_name({"a.b": value}, ["a.b"]) for value in values]
    assert len(set(names)) == len(set(texts))
    assert all(name not in (".", "..") and len(name) < 200 for name in names)
    assert not set("/\\\0 \n") & set("".join(names))
