import io

from tests.training.examples import RANKER
from thincdialog.api import registry, train

CALLBACK = """
[training.callbacks.stopper]
@callbacks = "tests.stop_at_step.v1"
step = 10
"""
LIMITS = {
    "training.max_steps": 50, "training.max_epochs": 0.0,
    "training.eval_every_steps": 5, "training.eval_every_epochs": 0.0,
}  # fmt: skip


def test_callback_of_a_user_sees_every_evaluation_and_stops_training():
    calls = []

    @registry.callbacks("tests.stop_at_step.v1")
    def stop_at_step(step: int):
        def callback(info, agent):
            calls.append((info["step"], info["scores"][info["score_name"]], agent))
            return info["step"] >= step

        return callback

    silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    result = train(RANKER + CALLBACK, overrides=LIMITS, **silent)
    assert [step for step, _, _ in calls] == [0, 5, 10]
    assert all(0.0 <= score <= 1.0 for _, score, _ in calls)
    assert len({id(agent) for _, _, agent in calls}) == 1
    assert "callback" in result.stopped_because
