from confection import Config
from hypothesis import given
from hypothesis import strategies as st

from tests.config.examples import GOOD
from thincdialog.config import load_config, write_config
from thincdialog.config.given import default_source, read_config
from thincdialog.config.schemas import BLOCKS, SECTION_ORDER, SETTINGS
from thincdialog.config.variables import fill_variables


def test_write_puts_children_under_parents_in_the_usual_order():
    text = write_config(load_config(GOOD).config)
    names = [line[1:-1] for line in text.split("\n") if line.startswith("[")]
    tops = list(dict.fromkeys(name.split(".")[0] for name in names))
    assert tops == [name for name in SECTION_ORDER if name in tops]
    shown = " ".join(names)
    assert " tasks.dialogue tasks.dialogue.mutators tasks.dialogue.mutators.*.flatten " in shown
    assert " training training.optimizer training.optimizer.learn_rate " in shown


def test_write_gives_what_both_readers_read_back():
    checked = load_config(GOOD)
    config, interpolated = checked.config, checked.interpolated
    assert load_config(write_config(config)).config == config
    assert Config().from_str(write_config(config), interpolate=False) == config
    assert Config().from_str(write_config(interpolated)) == interpolated


def test_write_keeps_comments():
    checked = load_config(GOOD)
    text = write_config(checked.config, checked.given.source)
    assert text.startswith("# Trains a ranker.\n# For the tests.\n\n[paths]\n")
    assert "\n# Who talks about what.\n[tasks.dialogue]\n" in text
    assert '\n# Whose turns are answered.\nlabel_speaker = "both"\n' in text
    assert load_config(text).config == checked.config


def test_default_config_has_every_setting_with_its_meaning():
    source = default_source()
    assert source.problems == []
    for name, settings_of_section in SETTINGS.items():
        entries = source.sections[name].entries
        assert list(entries) == list(settings_of_section)
        assert all(entry.comments for entry in entries.values())
    for name in source.sections:
        top = ".".join(name.split(".")[:2])
        assert name in SETTINGS or name == "paths" or top in BLOCKS or name.split(".")[0] in BLOCKS


keys = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)
# NUL is excluded, because it is refused.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
whole_numbers = st.integers(1 - 2**63, 2**63 - 1)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    whole_numbers,
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(["${paths.x}", "a/${paths.x}", '"${paths.x} b"', "5$$", "3", "true", "# a"]),
    st.lists(texts | st.lists(whole_numbers, max_size=2), max_size=3),
    st.dictionaries(texts, whole_numbers | st.lists(texts), max_size=2),
)
trees = st.recursive(
    st.dictionaries(keys, leaves, max_size=3),
    lambda inner: st.dictionaries(keys, st.one_of(leaves, inner), max_size=3),
    max_leaves=8,
)
configs = st.dictionaries(keys.map("x_{}".format), trees, max_size=3)


def read_back(text):
    read = read_config(text)
    assert read.problems == []
    return read


@given(configs)
def test_write_and_read_round_trip(config):
    assert read_back(write_config(config)).written == config


@given(configs)
def test_write_interpolated_round_trip(config):
    """Without variables, values keep their dollar signs."""
    read = read_back(write_config(Config(config, is_interpolated=True)))
    assert fill_variables(read, read.written) == config
    assert read.problems == []
