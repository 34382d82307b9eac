"""Differences between a config and the defaults, or another config."""

import pytest

from thincdialog.config import load_code, load_config, shipped_configs
from thincdialog.config.diff import diff_config
from thincdialog.errors import ConfigError

SMALL = """
[paths]
train = "a.jsonl"

[tasks.it]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}

[agent]
@agents = "thincdialog.Retrieval.v1"
history_size = 2

[training]
patience = 3

[training.optimizer]
@optimizers = "Adam.v1"
"""


def differing(*configs, **options):
    found = diff_config(*configs, **options)
    return {(d.section, d.key): (d.kind, d.old, d.new) for d in found if d.kind != "same"}


def test_diff_from_the_defaults_shows_what_is_not_default():
    assert differing(SMALL) == {
        ("paths", "train"): ("changed", "null", '"a.jsonl"'),
        ("tasks.it", "@teachers"): ("added", None, '"thincdialog.LabelledText.v1"'),
        ("tasks.it", "train"): ("changed", "null", "${paths.train}"),
        ("agent", "@agents"): ("added", None, '"thincdialog.Retrieval.v1"'),
        ("agent", "history_size"): ("changed", "3", "2"),
        ("training", "patience"): ("changed", "0", "3"),
        # Its arguments are compared with the defaults of Adam, not with those of LazyAdam.
        ("training.optimizer", "@optimizers"): (
            "changed",
            '"thincdialog.LazyAdam.v1"',
            '"Adam.v1"',
        ),
    }


def test_diff_between_configs_is_the_same_both_ways():
    other = SMALL.replace("patience = 3", "patience = 4").replace("history_size = 2\n", "")
    history, patience = ("agent", "history_size"), ("training", "patience")
    there = {history: ("changed", "3", "2"), patience: ("changed", "4", "3")}
    assert differing(SMALL, other) == there
    back = {place: (kind, new, old) for place, (kind, old, new) in there.items()}
    assert differing(other, SMALL) == back


def test_diff_sections_that_only_one_has():
    baseline = '\n[baselines.most]\n@agents = "thincdialog.MostFrequent.v1"\n'
    place, name = ("baselines.most", "@agents"), '"thincdialog.MostFrequent.v1"'
    assert differing(SMALL + baseline, SMALL) == {place: ("added", None, name)}
    assert differing(SMALL, SMALL + baseline) == {place: ("removed", name, None)}


def test_diff_applies_overrides_to_the_first_config_only():
    changed = differing(SMALL, SMALL, overrides={"training.patience": 7})
    assert changed == {("training", "patience"): ("changed", "3", "7")}


@pytest.mark.parametrize("name", shipped_configs())
def test_diff_of_a_config_and_its_complete_form_is_empty(name):
    path = shipped_configs()[name]
    if path.with_suffix(".py").exists():
        if "torch" in name:
            pytest.importorskip("torch")
        load_code(path.with_suffix(".py"))
    checked = load_config(path)
    assert differing(path, checked) == {}
    found = diff_config(path)
    assert len(found) > 50
    defaults = {(d.section, d.key): d.old for d in found if d.kind in ("same", "changed")}
    assert defaults[("system", "seed")] == "0" and defaults[("training", "max_epochs")] == "10.0"


def test_diff_takes_folders_of_saved_models(tmp_path):
    (tmp_path / "model-best").mkdir()
    (tmp_path / "model-best" / "config.cfg").write_text(SMALL)
    assert differing(tmp_path, SMALL) == differing(str(tmp_path / "model-best"), SMALL) == {}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="there is no config in the folder '.*empty'"):
        diff_config(tmp_path / "empty")
