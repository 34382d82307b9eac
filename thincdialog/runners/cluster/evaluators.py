"""Workers that only evaluate, for ``evaluate`` and for agents that do not learn."""

from typing import Any

from .remote_crew import RemoteCrew
from .team import Died


class Evaluators(RemoteCrew):
    """Workers that Ray runs, which load no training data."""

    def __init__(self, runner: Any):
        super().__init__(runner, None)

    def _begin(self) -> None:
        self._join()

    def _replace(self, death: Died) -> str:
        self.team.remove(death.workers)
        self._fill_up()
        return f"{death.who} died"

    def _to_evaluate(self, weights: Any) -> Any:
        return None  # They have loaded the weights.
