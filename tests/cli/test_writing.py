import pytest

from thincdialog.cli.writing import write_text
from thincdialog.errors import OutputError


def test_writing_keeps_the_old_file_if_the_new_one_fails(tmp_path):
    path = tmp_path / "a.cfg"
    write_text(str(path), "old", force=False)
    with pytest.raises(OutputError, match="is there already"):
        write_text(str(path), "new", force=False)
    with pytest.raises(UnicodeEncodeError):  # As a full disk, in the middle of writing.
        write_text(str(path), "new \ud800", force=True)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    write_text(str(path), "new", force=True)
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_writing_follows_links_and_makes_folders(tmp_path):
    write_text(str(tmp_path / "to" / "a.cfg"), "old", force=False)
    (tmp_path / "link").symlink_to(tmp_path / "to" / "a.cfg")
    write_text(str(tmp_path / "link"), "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "to" / "a.cfg").read_text() == "new"
    with pytest.raises(OutputError, match="cannot be written"):
        write_text(str(tmp_path / "link" / "b.cfg"), "x", force=False)
