import io

from thincdialog.api import registry, train

CONFIG = """
[tasks.orders]
@teachers = "thincdialog.CoffeeOrder.v1"

[tasks.orders.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tokenizer]
@tokenizers = "thincdialog.Whitespace.v1"

[agent]
@agents = "thincdialog.Ranker.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 32

[evaluation]
max_examples = 20
n_candidates = 5

[training]
max_steps = 50
eval_every_steps = 5
score = "hits@1"

[training.callbacks.stopper]
@callbacks = "tests.stop_at_step.v1"
step = 10
"""


def test_callback_of_a_user_sees_every_evaluation_and_stops_training(tmp_path):
    calls = []

    @registry.callbacks("tests.stop_at_step.v1")
    def stop_at_step(step: int):
        def callback(info, agent):
            calls.append((info["step"], info["scores"][info["score_name"]], agent))
            return info["step"] >= step

        return callback

    path = tmp_path / "config.cfg"
    path.write_text(CONFIG, encoding="utf8")
    result = train(path, stdout=io.StringIO(), stderr=io.StringIO())
    assert [step for step, _, _ in calls] == [0, 5, 10]
    assert all(0.0 <= score <= 1.0 for _, score, _ in calls)
    assert len({id(agent) for _, _, agent in calls}) == 1
    assert "callback" in result.stopped_because
