"""Run by a process that was just started, before all else: if who started it is gone before it was
told what to do, it ends without a word. (It would show where Python read nothing more.)"""

import pickle
import sys
from multiprocessing import spawn
from types import TracebackType
from typing import Any, Optional

_show = sys.excepthook


def _show_others(kind: Any, error: BaseException, trace: Optional[TracebackType]) -> None:
    last = trace
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    is_cut = isinstance(error, (EOFError, pickle.UnpicklingError))
    # What ``_main`` itself reads comes whole from whoever lives.
    if last is None or not is_cut or last.tb_frame.f_code is not spawn._main.__code__:
        _show(kind, error, trace)


sys.excepthook = _show_others
