"""Layout files: valid and invalid ones."""

import gzip

import pytest

from tests.fuzzing import within_time
from thincdialog.errors import ConfigError, DataError
from thincdialog.formats.layout_file import find_layout, read_layout


@pytest.mark.parametrize(
    "content, words",
    [
        ("turns: a\nspaker: b", "a layout has no key 'spaker'; did you mean 'speaker'?"),
        ("text: b\nlabel: c\nonly:", "'only' is .*: expected a mapping"),
        ("text: b", "does not say where the answers are: set 'turns' or 'group'"),
        ("turns: a\nlabel: b", "has 'turns' and 'label': set only one of them"),
        ("turns: [a]", r"'turns' is .*: expected a text"),
        ("label: a\ntext: []", "'text' is '\\[\\]': expected a place, or a list"),
        ("- a", "a layout is a mapping such as 'text: prompt', not a list"),
        ("a: [b", "not valid YAML: expected ',' or ']'"),
        ("a: b\nb: c: d", ":2  not valid YAML: mapping values are not allowed here"),
        ("group: a\nreply_to: b", "'reply_to' needs 'group' and 'turn_id'"),
        ("pattern: (a\ngroup: a", r"'\(a' is not a regular expression: missing \)"),
        ("replace: {'*': x}\ngroup: a", "'\\*' is not a regular expression: nothing to repeat"),
        ("separator: x\nblocks: true\nlabel: a", "'separator' and 'blocks': set only one of them"),
        ("html: tags\nlabel: a", "'html' is 'tags': expected true or false"),
        ("speakers: {a: b}\ngroup: a", "'speakers' is an object: expected a mapping of roles to"),
        # An unsafe loader would run this code.
        (
            "turns: !!python/object/apply:os.system ['true']",
            "not valid YAML: could not",
        ),
    ],
)
def test_layout_files_are_checked(tmp_path, content, words):
    path = tmp_path / "my.yml"
    path.write_text(content)
    with pytest.raises(DataError, match=f"my.yml(:1|:2|)  .*{words}" if words[0] != ":" else words):
        find_layout(str(path))


def test_layout_places_may_be_numbers(tmp_path):
    path = tmp_path / "my.yml"
    path.write_text("records: {train: 0}\ntext: [1, a.2]\nlabel: -1\n")
    layout = read_layout(path)
    assert (layout.records, layout.text, layout.label) == ({"train": "0"}, ["1", "a.2"], "-1")


def test_layout_names_are_checked(tmp_path):
    with pytest.raises(ConfigError, match="no shipped layout 'sharegtp'.*did you mean 'sharegpt'"):
        find_layout("sharegtp")
    with pytest.raises(DataError, match="my.yml  file not found"):
        find_layout(str(tmp_path / "my.yml"))


def test_layouts_that_expand_to_terabytes_are_refused(tmp_path):
    path = tmp_path / "bomb.yml"
    levels = ", ".join(f"&a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))
    path.write_text(f"about: [&a0 [x, x], {levels}]\nturns: x\n")
    with pytest.raises(DataError, match="its aliases expand to far too many values"):
        within_time(lambda: read_layout(path))
    path.write_bytes(gzip.compress(b"# long\n" * (1 << 20)))
    with pytest.raises(DataError, match="holds more than 1 MB, too much to read"):
        read_layout(path)
