"""Phrases that we do not use, in text that a reader sees, and what to write instead."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from thincdialog.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
# Regular expression of a phrase to its replacement.
PHRASES = {
    r"whoever|whomever": "the real actor, or the passive",
    r"(no|some|every|any)body": "the real actor, or the passive",
    r"anew": "again, from scratch",
    r"heed(s|ed|ing)?": "respect, follow",
    r"mend(s|ed|ing)?": "fix, repair",
    r"seldom": "rarely",
    r"as ever": "as before",
    r"(?<!\.)beside": "next to, in addition to",
    r"behind": "after",
    r"but for": "except",
    r"in the place of": "instead of, replaces",
    r"without (a word|more ado)": "without a warning; directly",
    r"of (yours|ours|theirs)": "custom, your, our, their",
    r"strangers?": "untrusted files",
    r"comes? along": "is included, is bundled",
    r"stands?(?!-)": "is, is written in",
    r"told from": "ranked against, distinguished from",
    r"(is|are|was|were|be|been|being) told": "is printed, logged, raised, returned",
    r"tells? (of|how|in|whether|what)": "prints, logs, returns, says",
    r"(say|says|said) so": "a warning is logged",
    r"(go|goes|going|gone|went) on": "continue, resume",
    r"to the bit|(the )?same bits": "bit for bit, reproducible",
    r"learnt": "learned, trained on",
    r"by heart": "memorise",
    r"(all|everything) that (is|was|are|were) (read|made|found|known|there|left|written)": "a noun",
    r"what (is|was|are|were) (read|made|found|known|there|left|written|held)": "a noun",
    r"what (reads|makes|stands|comes|came|has|holds|gives|learns|learned)": "a noun",
    r"so many|so much": "the number, or that many",
    r"if not given|if it is not given": "(default: ...)",
    r"\d letters|(many|so|first|of|the) letters of|letters of a text": "characters",
}
# A gap is any white space, because phrases go across the ends of lines.
GAPS = [each.replace(" ", r"\s+") for each in PHRASES]
NAMED = "|".join(rf"(?P<_{n}>{each})\b" for n, each in enumerate(GAPS))
PHRASE = re.compile(rf"\b(?:{NAMED})", re.I)
# File and part of a line in which a phrase is in place, and why.
EXCEPTIONS = {
    ("CONTRIBUTING.md", 'not "what reads"'): "shows the clause that we do not use",
    ("CONTRIBUTING.md", '(not "anew")'): "names phrases that we do not use",
    ("CONTRIBUTING.md", '(not "beside")'): "names phrases that we do not use",
}
READ = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "docs/**/*.md", "configs/*.cfg",
        "configs/*.py", "thincdialog/**/*.py", "thincdialog/**/*.cfg"]  # fmt: skip


def found_in(text, name=""):
    """The phrases in a text: line, phrase and replacement. A phrase may go across a line's end."""
    found = []
    joined = re.sub(r"\n[ \t]*(?:[#*] ?)?", lambda gap: " " * len(gap[0]), text)
    for match in PHRASE.finditer(joined):
        number = text.count("\n", 0, match.start()) + 1
        line = text.splitlines()[number - 1]
        if not any(name == file and part in line for file, part in EXCEPTIONS):
            replacement = list(PHRASES.values())[int(match.lastgroup[1:])]
            found.append(f"{name}:{number}  '{match[0]}': write {replacement}")
    return found


def files():
    return sorted({path for pattern in READ for path in ROOT.glob(pattern)})


def explanations(source):
    """The comments and docstrings of a Python file at their lines. Other lines are only a dot."""
    lines, kept = source.split("\n"), ["."] * (source.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            kept[token.start[0] - 1] = token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            kept[node.lineno - 1 : node.end_lineno] = lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(kept)


def test_words_files_use_no_listed_phrase():
    found = []
    for path in files():
        found += found_in(path.read_text(encoding="utf8"), path.relative_to(ROOT).as_posix())
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_words_explanations_of_tests_use_no_listed_phrase():
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found += found_in(explanations(path.read_text(encoding="utf8")), name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_words_help_uses_no_listed_phrase(command, capsys):
    try:
        main([*command.split(), "--help"])
    except SystemExit:
        pass
    assert not found_in(capsys.readouterr().out, f"thincdialog {command} --help")


def test_words_exceptions_are_needed():
    for file, part in EXCEPTIONS:
        lines = [line for line in (ROOT / file).read_text("utf8").splitlines() if part in line]
        assert lines and all(map(PHRASE.search, lines)), (file, part)


@pytest.mark.parametrize(
    "text, count",
    [
        ("Begin anew with what is left of it.", 2),
        ("# The replies behind\n# the first are told\n# from others", 2),
        ("a stand-in for CuPy; the first letters and digits; a valid config", 0),
        ("Training goes\n    on.", 1),
    ],
)
def test_words_finds_phrases_across_lines(text, count):
    assert len(found_in(text)) == count


def test_words_explanations_are_comments_and_docstrings_at_their_lines():
    source = 'x = "anew"  # told\n# from others\n\ndef f():\n    """Begin\n    anew."""\n'
    shown = '# told\n# from others\n.\n.\n    """Begin\n    anew."""\n.'
    assert explanations(source) == shown and len(found_in(shown)) == 2
