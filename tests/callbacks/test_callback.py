from tests.training.examples import RANKER, quietly_train
from thincdialog.api import registry


def test_callback_of_a_user_sees_every_evaluation_and_stops_training():
    calls = []

    @registry.callbacks("tests.stop_at_step.v1")
    def stop_at_step(step: int):
        def callback(info, agent):
            calls.append((info["step"], info["scores"][info["score_name"]], agent))
            return info["step"] >= step

        return callback

    block = {"@callbacks": "tests.stop_at_step.v1", "step": 10}
    settings = {"training__eval_every_steps": 5, "training__callbacks__it": block}
    result, _ = quietly_train(RANKER, **settings)
    assert [step for step, _, _ in calls] == [0, 5, 10]
    assert all(0.0 <= score <= 1.0 for _, score, _ in calls)
    assert len({id(agent) for _, _, agent in calls}) == 1
    assert "callback" in result.stopped_because
