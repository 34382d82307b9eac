from confection import Config
from hypothesis import given
from hypothesis import strategies as st
from thincdialog.config.reading import read_config

from tests.config.examples import GOOD
from thincdialog.config import load_config, write_config
from thincdialog.config.schemas import BLOCKS, SECTION_ORDER, SETTINGS
from thincdialog.config.source import read_source
from thincdialog.config.variables import fill_variables


def sections_of(text):
    return [line[1:-1] for line in text.split("\n") if line.startswith("[")]


def test_write_puts_children_under_parents_in_the_usual_order():
    text = write_config(load_config(GOOD).config)
    names = sections_of(text)
    tops = list(dict.fromkeys(name.split(".")[0] for name in names))
    assert tops == [name for name in SECTION_ORDER if name in tops]
    position = names.index("tasks.dialogue")
    assert names[position + 1 : position + 3] == [
        "tasks.dialogue.mutators",
        "tasks.dialogue.mutators.*.flatten",
    ]
    position = names.index("training")
    assert names[position + 1 : position + 3] == [
        "training.optimizer",
        "training.optimizer.learn_rate",
    ]


def test_write_gives_what_both_readers_read_back():
    config = load_config(GOOD).config
    text = write_config(config)
    assert load_config(text).config == config
    assert Config().from_str(text, interpolate=False) == config
    assert Config().from_str(write_config(load_config(GOOD).interpolated)) == (
        load_config(GOOD).interpolated
    )


def test_write_keeps_comments():
    checked = load_config(GOOD)
    text = write_config(checked.config, checked.given.source)
    assert text.startswith("# Trains a ranker.\n# For the tests.\n\n[paths]\n")
    assert "\n# Who talks about what.\n[tasks.dialogue]\n" in text
    assert '\n# Whose turns are answered.\nlabel_speaker = "both"\n' in text
    assert load_config(text).config == checked.config


def test_default_config_has_every_setting_with_its_meaning():
    from thincdialog.config.reading import DEFAULTS_FILE

    source = read_source(DEFAULTS_FILE.read_text(encoding="utf8"))
    assert source.problems == []
    for name, settings in SETTINGS.items():
        entries = source.sections[name].entries
        assert list(entries) == list(settings)
        assert all(entry.comments for entry in entries.values())
    for name in source.sections:
        top = ".".join(name.split(".")[:2])
        assert name in SETTINGS or name == "paths" or top in BLOCKS or name.split(".")[0] in BLOCKS


keys = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(1 - 2**63, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(["${paths.x}", "a/${paths.x}", '"${paths.x} b"', "5$$", "3", "true", "# a"]),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(1 - 2**63, 2**63 - 1), max_size=2),
)
trees = st.recursive(
    st.dictionaries(keys, leaves, max_size=3),
    lambda inner: st.dictionaries(keys, st.one_of(leaves, inner), max_size=3),
    max_leaves=8,
)


def without_defaults(reading, names):
    return {name: reading.data[name] for name in names}


@given(st.dictionaries(keys, trees, max_size=3))
def test_write_and_read_round_trip(config):
    config = {f"x_{name}": section for name, section in config.items()}
    reading = read_config(write_config(config))
    assert reading.problems == []
    assert without_defaults(reading, config) == config


@given(st.dictionaries(keys, trees, max_size=3))
def test_write_interpolated_round_trip(config):
    """What has no variables any more keeps its dollar signs."""
    config = {f"x_{name}": section for name, section in config.items()}
    reading = read_config(write_config(Config(config, is_interpolated=True)))
    filled, mistakes, _ = fill_variables(without_defaults(reading, config))
    assert mistakes == [] and filled == config
