"""The interface of callbacks, which are custom functions called after every evaluation.

    from thincdialog.api import registry

    @registry.callbacks("stop_when_slow.v1")
    def stop_when_slow(examples_per_second: float):
        def callback(info, agent):
            rate = info["examples_per_second"]
            return rate is not None and rate < examples_per_second
        return callback

A registered function returns the callback. It is called with ``info``, the same
row that loggers get (see ``thincdialog/loggers/logger.py``; ``scores`` holds all dev
metrics), and with the agent, which has its latest weights again instead of the averaged weights
that were evaluated. If the callback returns True, training ends. If it returns False or None,
training continues. Limits, patience and a target score are settings of ``[training]`` and need no
callback.

A callback that keeps state can have two methods, so that ``train --resume`` restores the state:
``state()`` returns it as JSON values, and ``restore(state)`` sets it again.
"""

from typing import Any, Callable, Mapping, Optional

import numpy

from ..contract import Returned, called
from ..protocol import Agent
from ..registry import registry

# (info, agent) -> True to end training.
Callback = Callable[[Mapping[str, Any], Agent], Optional[bool]]


def shall_end(callback: Callback, info: Mapping[str, Any], agent: Agent) -> bool:
    """Call a callback and return whether it ends training.

    RAISES (CodeError): If the callback returns anything but True, False or None.
    """
    return bool(called(callback, _ANSWER, info, agent))


def _is_answer(value: Any, *given: Any) -> bool:
    return value is None or isinstance(value, (bool, numpy.bool_))


_ANSWER = Returned("True to end training, or False or None", _is_answer)
registry.callbacks.makes(Callback)
