"""Small talk about colours that agents can learn."""

import io

from thincdialog.api import BatchWorld, Fixed, Message, train

PLACES = ("here", "there", "yonder")


def examples(answers):
    """What to say to each colour, at three places."""
    return [
        {"text": f"{colour} {place}", "labels": [reply]}
        for place in PLACES
        for colour, reply in answers.items()
    ]


def learn(agent, teacher, optimizer, epochs=30, size=4):
    with BatchWorld(teacher, agent, Fixed(size)) as world:
        for epoch in range(epochs):
            world.start_epoch(epoch, 0)
            while not world.epoch_done():
                agent.seed(0, epoch, 0)
                world.parley()
                agent.update(optimizer)


def answer(agent, text):
    copy = agent.clone()
    copy.observe(Message(text=text, episode_done=True))
    return copy.act()["text"]


def observed(agent, rows):
    return agent.batch_observe([Message(row, id=str(i)) for i, row in enumerate(rows)])


def run(config, **options):
    return train(config, stdout=io.StringIO(), stderr=io.StringIO(), **options)
