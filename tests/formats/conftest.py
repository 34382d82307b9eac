"""Files for readers, and the errors that they raise."""

import gzip
import json

import pytest

from thincdialog.errors import DataError


@pytest.fixture
def written(tmp_path):
    """Writes a file of bytes, a text, or JSON lines; gives its path."""

    def write(content, name="data.txt"):
        if isinstance(content, list):
            content = "".join(f"{json.dumps(value) if value else ''}\n" for value in content)
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return str(tmp_path / name)

    return write


@pytest.fixture
def error(written):
    """What a reader says of a file: `:line  text`, or `  text` without a line."""

    def say(read, content, name="data.txt"):
        path = written(content, name)
        with pytest.raises(DataError) as caught:
            list(read(path))
        assert str(caught.value).startswith(path)
        return str(caught.value).removeprefix(path)

    return say
