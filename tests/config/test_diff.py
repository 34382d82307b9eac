"""What sets a config apart from the defaults and from others."""

import pytest

from thincdialog.config import load_config, shipped_configs
from thincdialog.config.diff import diff_config
from thincdialog.errors import ConfigError

SMALL = """
[paths]
train = "a.jsonl"

[tasks.it]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Classifier.v1"
history_size = 2

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 256

[training]
patience = 3

[training.optimizer]
@optimizers = "thincdialog.LazyAdam.v1"
"""


def differing(*configs, **options):
    found = diff_config(*configs, **options)
    return {(d.section, d.key): (d.kind, d.old, d.new) for d in found if d.kind != "same"}


def test_diff_from_the_defaults_shows_what_is_not_default():
    assert differing(SMALL) == {
        ("paths", "train"): ("changed", "null", '"a.jsonl"'),
        ("tasks.it", "@teachers"): ("added", None, '"thincdialog.LabelledText.v1"'),
        ("tasks.it", "train"): ("changed", "null", "${paths.train}"),
        ("tokenizer", "@tokenizers"): ("added", None, '"thincdialog.Words.v1"'),
        ("agent", "@agents"): ("added", None, '"thincdialog.Classifier.v1"'),
        ("agent", "history_size"): ("changed", "1", "2"),
        ("agent.model", "@models"): ("added", None, '"thincdialog.Classifier.v1"'),
        ("agent.model.encoder", "@models"): ("added", None, '"thincdialog.BagEncoder.v1"'),
        ("training", "patience"): ("changed", "0", "3"),
        # Its arguments are those of LazyAdam by default, not those of Adam.
        ("training.optimizer", "@optimizers"): (
            "changed",
            '"Adam.v1"',
            '"thincdialog.LazyAdam.v1"',
        ),
    }


def test_diff_between_configs_is_the_same_both_ways():
    other = SMALL.replace("patience = 3", "patience = 4").replace("history_size = 2\n", "")
    there = differing(SMALL, other)
    assert there == {
        ("agent", "history_size"): ("changed", "1", "2"),
        ("training", "patience"): ("changed", "4", "3"),
    }
    back = differing(other, SMALL)
    assert back == {place: (kind, new, old) for place, (kind, old, new) in there.items()}


def test_diff_sections_that_only_one_has():
    baseline = '\n[baselines.most]\n@agents = "thincdialog.MostFrequent.v1"\n'
    added = differing(SMALL + baseline, SMALL)
    assert added[("baselines.most", "@agents")][0] == "added"
    removed = differing(SMALL, SMALL + baseline)
    assert {kind for kind, _, _ in removed.values()} == {"removed"}


def test_diff_applies_overrides_to_the_first_config_only():
    assert differing(SMALL, SMALL, overrides={"training.patience": 7}) == {
        ("training", "patience"): ("changed", "3", "7")
    }


@pytest.mark.parametrize("name", shipped_configs())
def test_diff_of_a_config_and_its_complete_form_is_empty(name):
    path = shipped_configs()[name]
    checked = load_config(path)
    assert differing(path, checked) == {}
    found = diff_config(path)
    assert len(found) > 50
    defaults = {(d.section, d.key): d.old for d in found if d.kind in ("same", "changed")}
    assert defaults[("system", "seed")] == "0" and defaults[("training", "max_epochs")] == "10.0"


def test_diff_takes_folders_of_saved_models(tmp_path):
    (tmp_path / "model-best").mkdir()
    (tmp_path / "model-best" / "config.cfg").write_text(SMALL)
    for folder in (tmp_path, tmp_path / "model-best", str(tmp_path)):
        assert differing(folder, SMALL) == {}
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="there is no config in the folder '.*empty'"):
        diff_config(tmp_path / "empty")
