"""Small talk about colours that agents can learn, and agents to learn it."""

import io

from thinc.api import chain, noop, with_padded

from thincdialog.api import BatchWorld, Fixed, IterableTeacher, Message, registry, train
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.ops.choice import get_dialog_ops, using_ops

PLACES = ("here", "there", "yonder")


def examples(answers):
    """Return what to say to each colour, in three places."""
    return [
        {"text": f"{colour} {place}", "labels": [reply]}
        for place in PLACES
        for colour, reply in answers.items()
    ]


def make(section, name, *args, **options):
    """Build a registered object. Names without a package are those of thincdialog."""
    full_name = name if "." in name else f"thincdialog.{name}.v1"
    return getattr(registry, section).get(full_name)(*args, **options)


def teacher_of(rows):
    return IterableTeacher({"train": rows}).for_split("train", training=True)


def build(kind, make_model, rows, tokenizer=lambda: make("tokenizers", "Words"), **options):
    """Build an untrained agent that is initialized with the rows, and their teacher."""
    teacher = teacher_of(rows)
    with using_ops(get_dialog_ops(-1)):
        agent = make("agents", kind, make_model(), **options)
        agent.initialize(teacher, tokenizer=tokenizer(), seed=0)
    return agent, teacher


def learn(agent, teacher, optimizer, epochs=30, size=4):
    with BatchWorld(teacher, agent, Fixed(size)) as world:
        for epoch in range(epochs):
            world.start_epoch(epoch, 0)
            while not world.epoch_done():
                agent.begin_microbatch(0, epoch, 0)
                world.parley()
                agent.update(optimizer)


def reply(agent, text, **fields):
    copy = agent.clone()
    copy.observe(Message(text=text, episode_done=True, **fields))
    return copy.act()


def answer(agent, text, **fields):
    return reply(agent, text, **fields)["text"]


def bag():
    return make("models", "BagEncoder", width=4)


def rectangles():
    """Return an encoder that pads."""
    return chain(TokenEmbed(4), with_padded(noop()), pool("max"))


def messages(rows):
    return [Message({"id": str(number), **row}) for number, row in enumerate(rows)]


def run(config, **options):
    return train(config, stdout=io.StringIO(), stderr=io.StringIO(), **options)
