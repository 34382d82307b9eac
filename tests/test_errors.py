"""The texts of errors."""

import pickle

from thincdialog.errors import ConfigError, DataError, MissingPackageError, Problem, WorkerError


def test_errors_texts():
    one = ConfigError([Problem("a.cfg:3", "is bad", "mend it")], "a.cfg")
    assert str(one) == "1 problem in a.cfg\n  a.cfg:3  is bad - mend it"
    two = ConfigError([Problem("", "x"), Problem("", "y")])
    assert str(two) == "2 problems in config\n  x\n  y"
    many = ConfigError([Problem("", f"problem {n}") for n in range(1000)], "talk.jsonl")
    assert str(many).count("\n") == 26 and str(many).endswith("... and 975 more")
    assert len(many.problems) == 1000
    assert str(DataError("a.txt", "is odd", 4)) == "a.txt:4  is odd"
    error = MissingPackageError("matplotlib", "plot", "A picture")
    assert "pip install 'thincdialog[plot]'" in str(error) and error.exit_code == 1


def test_errors_are_the_same_in_another_process():
    for error in (
        DataError("a.txt", "is odd", 4),
        ConfigError([Problem("a.cfg:1", "is odd")], "a.cfg"),
        MissingPackageError("matplotlib", "plot", "A picture"),
        WorkerError(1, "ended", traceback="x\ny"),
    ):
        same = pickle.loads(pickle.dumps(error))
        assert (type(same), str(same), vars(same)) == (type(error), str(error), vars(error))
