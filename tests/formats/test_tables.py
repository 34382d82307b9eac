"""Delimiters and encodings of tables, guessed or set."""

import gzip

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.context import Bookmark
from thincdialog.formats.tables import find_delimiter, read_table

ROWS = [{"text": "a, b; c | d", "label": "x"}, {"text": "\u00e9\u20ac\ntwo", "label": "y"}]


def table(delimiter, quoted="a, b; c | d"):
    lines = [["text", "label"], [f'"{quoted}"', "x"], ['"\u00e9\u20ac\ntwo"', "y"]]
    return "".join(f"{delimiter.join(cells)}\n" for cells in lines)


def rows(path, encoding=None, **choices):
    at = Bookmark()
    at.encoding = encoding
    return [row for _, row in read_table(path, at, **choices)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gzip"])
def test_table_recognises_delimiter_and_byte_order_mark(delimiter, encoding, written):
    text = table(delimiter)
    raw = gzip.compress(text.encode("utf-16")) if encoding == "gzip" else text.encode(encoding)
    path = written(raw, "a.csv")
    assert rows(path) == rows(path, fields=["text", "label"]) == ROWS


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be", "utf-32", "cp858"])
def test_table_reads_the_encoding_that_is_set(encoding, written):
    assert rows(written(table(";").encode(encoding), "a.csv"), encoding) == ROWS


def test_table_resumes_anywhere_with_the_columns_of_the_header(written):
    for raw in (table("|").encode(), table("|").encode("utf-16")):
        path, at = written(raw, "a.csv"), Bookmark()
        reading = read_table(path, at)
        next(reading)
        next(reading)
        at.before()
        assert [row for _, row in read_table(path, Bookmark(at.mark()))] == ROWS[1:]


def test_table_names_lines_that_are_not_in_its_encoding(written):
    with pytest.raises(DataError, match=r':3  not UTF-8: .* or set encoding = "cp1252"'):
        rows(written(table(",").encode("latin-1", "replace"), "a.csv"))
    for text, encoding in (
        ("お問い合わせは何時", "shift_jis"),
        ("营业时间", "gb18030"),
        ("Привет", "cp1251"),
    ):
        with pytest.raises(
            DataError, match=':2  not UTF-8: .*script.* "shift_jis" [(]or gb18030, c'
        ):
            rows(written(f"text,label\n{text},café\n".encode(encoding, "replace"), "a.csv"))
    with pytest.raises(DataError, match=r":3  not ASCII: byte 2 .*'encoding'"):
        rows(written(table(",").encode(), "a.csv"), "ascii")
    torn = table(",").encode("utf-16") + b"a"
    with pytest.raises(DataError, match=":5  not UTF-16: byte 1 is 0x61"):
        rows(written(torn, "a.csv"))
    with pytest.raises(DataError, match="there is no encoding 'utf8000'"):
        rows(written("a,b\n", "a.csv"), "utf8000")


@pytest.mark.parametrize(
    "line, columns, fields, found",
    [
        ("text;label, if known;more, or less, or none", None, ["text"], ";"),
        ("text;label, if known;more, or less, or none", None, (), ","),
        ("hi, you;greet", ["text", "label"], (), ","),
        ("hi, you, there;greet", ["text", "label"], (), ";"),
        ('"a;b;c",label', None, (), ","),
        ("text", None, ["text"], ","),
        ("a|b", None, ["text"], "|"),
    ],
)
def test_table_guesses_its_delimiter_by_the_first_line(line, columns, fields, found):
    assert find_delimiter(line, columns, fields) == found


def test_table_takes_the_delimiter_that_is_set(written):
    path = written("text:label\na;b:x\n", "a.csv")
    assert rows(path, delimiter=":") == [{"text": "a;b", "label": "x"}]
    path = written('text;label\n"a;b";x\n', "a.tsv")
    assert rows(path, delimiter=";") == [{"text": "a;b", "label": "x"}]


def test_table_without_a_header_names_the_setting(written):
    path = written("hi,greet\nbye,go\n", "a.csv")
    with pytest.raises(DataError, match=r'such as columns = \["text", "label"\]'):
        rows(path, fields=["text", "label"])
    assert len(rows(path, columns=["text", "label"], fields=["text", "label"])) == 2


def test_table_in_tsv_has_other_delimiters_if_its_header_has(written):
    fields = ["text", "label"]
    assert rows(written("text;label\na\tb;x\n", "a.tsv"), fields=fields) == [
        {"text": "a\tb", "label": "x"}
    ]
    assert rows(written("text,x\tlabel\n", "b.tsv"), fields=["label"]) == []
    assert rows(written("text\nhi, you\n", "c.tsv"), fields=["text"]) == [{"text": "hi, you"}]


def test_table_with_equal_column_names_is_refused_if_all_columns_are_read(written):
    path = written("text,note,note\nhi,a,b\n", "a.csv")
    assert rows(path, fields=["text"])
    with pytest.raises(DataError, match="a.csv:1  2 columns are called 'note'"):
        rows(path)


def test_table_that_repeats_its_header_is_noted_or_refused(written):
    path, at = written("\ufefftext,label\nhi,x\n\ufefftext,label\nhi,y\n", "a.csv"), Bookmark()
    assert [row["label"] for _, row in read_table(path, at)] == ["x", "y"]
    assert at.counts.note.startswith("line 3 repeats the header")
    at = Bookmark()
    at.has_flags = True  # Each row needs an answer.
    with pytest.raises(DataError, match="a.csv:3  repeats the header"):
        list(read_table(path, at))


@pytest.mark.parametrize("text", ["text,label\rhi,x\r", "text,label\nhi\rho,x\n"])
def test_table_with_old_line_ends_says_how_to_save_it(written, text):
    with pytest.raises(DataError, match="a line ends with CR alone: save the file with LF"):
        rows(written(text, "a.csv"))
    assert rows(written('text,label\n"hi\rho",x\r\n', "a.csv")) == [
        {"text": "hi\rho", "label": "x"}
    ]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_table_skips_the_line_of_excel_before_the_header(written, sign):
    path = written(f"\ufeffsep={sign}\r\ntext{sign}label\r\nhi{sign}x\r\n", "a.csv")
    assert rows(path, fields=["text", "label"]) == [{"text": "hi", "label": "x"}]


def test_table_of_one_column_keeps_quoted_empty_cells(written):
    path = written(b'text\nhi\n""\n\nbye\n', "a.csv")
    assert [row["text"] for row in rows(path)] == ["hi", "", "bye"]
