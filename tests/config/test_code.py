import pytest

from thincdialog.api import registry
from thincdialog.config import CodeError, load_code


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_code_registers_functions_once(tmp_path):
    text = "from thincdialog.api import registry\nregistry.layers('test_code.A.v1', func=int)\n"
    path = write(tmp_path / "my_code.py", text)
    [module] = load_code(path)
    assert registry.layers.get("test_code.A.v1") is int
    assert load_code([str(path), path]) == [module, module]
    assert load_code(tmp_path / "." / "my_code.py") == [module]
    assert load_code(None) == load_code([]) == []


def test_code_imports_files_of_one_name(tmp_path):
    [first] = load_code(write(tmp_path / "same.py", "x = 1\n"))
    [second] = load_code(write(tmp_path / "sub" / "same.py", "x = 2\n"))
    assert (first.x, second.x) == (1, 2)


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n\nx +\n", ":3  cannot be imported: SyntaxError: invalid syntax"),
        ("x = 1\ny = 1 / 0\n", ":2  cannot be imported: ZeroDivisionError: division by zero"),
        ("x = 1\nraise SystemExit(3)\n", ":2  cannot be imported: SystemExit: 3"),
        ("import no_such_module_there\n", ":1  cannot be imported: ModuleNotFoundError: No mod"),
        ("def f():\n    return no_name\n\nf()\n", ":2  cannot be imported: NameError"),
    ],
)
def test_code_names_the_line_that_fails(tmp_path, text, words):
    path = write(tmp_path / "bad.py", text)
    for _ in range(2):  # Nothing of it is kept.
        with pytest.raises(CodeError) as caught:
            load_code(path)
        assert str(caught.value).startswith(f"{path}{words}")


def test_code_missing_file(tmp_path):
    with pytest.raises(CodeError, match="there is no such Python file"):
        load_code(tmp_path / "none.py")
    with pytest.raises(CodeError, match=r"should end in \.py"):
        load_code(write(tmp_path / "code.txt", "x = 1"))
