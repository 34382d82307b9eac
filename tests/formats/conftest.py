"""Fixtures: files for readers, and the errors that readers raise."""

import gzip
import json

import pytest

from thincdialog.errors import DataError


@pytest.fixture
def written(tmp_path):
    """Return a function that writes bytes, a text, or values as JSON lines to a file, and returns
    the file's path."""

    def write(content, name="data.txt"):
        if isinstance(content, list):
            content = "".join(f"{json.dumps(value) if value else ''}\n" for value in content)
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return str(tmp_path / name)

    return write


@pytest.fixture
def error(written):
    """Return a function that returns a reader's error about a file, without the path:
    `:line  text`, or `  text` if there is no line."""

    def say(read, content, name="data.txt"):
        path = written(content, name)
        with pytest.raises(DataError) as caught:
            list(read(path))
        assert str(caught.value).startswith(path)
        return str(caught.value).removeprefix(path)

    return say
