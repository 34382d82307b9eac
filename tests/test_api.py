"""What Python users import."""

from types import ModuleType
from typing import Any, Mapping, Optional, Union

from thincdialog import api

OTHERS = (Any, Mapping, Optional, Union)


def test_api_exports_all_that_it_imports():
    names = [
        name
        for name, value in vars(api).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and value not in OTHERS
    ]
    assert sorted(set(names) - {"Path"}) == sorted(api.__all__)
