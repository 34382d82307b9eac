"""The text that shows a world's last parley."""

from tests.worlds.talkers import BatchListener, Listener, make_teacher
from thincdialog.batchers import Fixed
from thincdialog.messages import Message
from thincdialog.protocol import Agent
from thincdialog.worlds import BatchWorld, MultiAgentWorld, PartnerWorld
from thincdialog.worlds.display import END


def test_display_one_conversation():
    world = PartnerWorld(make_teacher([2], False), Listener())
    assert world.display() == ""
    world.parley()
    first = world.display()
    world.parley()
    assert first.splitlines() == [
        "[task]: say 0 0", "   [eval_labels: answer 0 0]", f"   [agent]: {world_reply(0)}",
    ]  # fmt: skip
    assert world.display().splitlines()[-1] == END
    world.reset()
    assert world.display() == ""


def world_reply(turn):
    return Listener.reply([f"0/{number}" for number in range(turn + 1)])["text"]


def test_display_a_batch_and_how_many_more():
    world = BatchWorld(make_teacher([1] * 5, True), BatchListener(), Fixed(5))
    world.parley()
    lines = world.display(2).splitlines()
    assert lines[-1] == "... and 3 more conversations"
    assert len([line for line in lines if line == END]) == 2
    assert len([line for line in lines if line.startswith("   [labels: answer ")]) == 2
    assert len(world.display().splitlines()) == 5 * 4


def test_display_long_and_missing_texts():
    class Mute(Agent):
        def act(self):
            return Message()

    teacher = make_teacher([1], False)
    world = MultiAgentWorld([teacher, Mute(), Mute()])
    world.parley()
    assert world.display().splitlines()[2:4] == [
        "   [agent_1]: (no text)",
        "   [agent_2]: (no text)",
    ]
    world.acts = [Message(text="x" * 3000)]
    assert len(world.display()) < 1100
