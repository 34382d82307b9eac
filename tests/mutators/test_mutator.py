"""All mutators in teachers: counts, ids, epochs, streams, and configs."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from thincdialog.config import load_config, resolve_config
from thincdialog.messages import Message
from thincdialog.registry import registry
from thincdialog.teachers import IterableTeacher

SIZES = [3, 1, 4, 2, 5]
CLASSES = ["red", "green", "blue"]


def data():
    return [
        [(f"{number}.{turn} one two", CLASSES[(number + turn) % 3]) for turn in range(size)]
        for number, size in enumerate(SIZES)
    ]


def teacher(mutators, streaming=False, split="train", training=True, read=data, **settings):
    splits = {"train": read, "dev": read}
    made = IterableTeacher(splits, mutators=mutators, streaming=streaming, **settings)
    return made.for_split(split, training=training)


def epoch(shown, number=0):
    """Return the examples of one epoch, exactly as the teacher returns them."""
    shown.start_epoch(number, 0)
    found = []
    while not shown.epoch_done():
        found.append(shown.act())
        shown.observe(Message(text="reply"))
    return found


def facts(found):
    return sorted((m["id"], m["text"], tuple(m.all_labels)) for m in found)


# Names in the registry, the arguments, and a function from the sizes of episodes to their new
# sizes.
MUTATORS = {
    "Flatten": ({"context_length": 2}, lambda sizes: [1] * sum(sizes)),
    "LastTurn": ({}, lambda sizes: [1] * sum(sizes)),
    "Limit": ({"n_episodes": 3}, lambda sizes: sizes[:3]),
    "Limit of examples": ({"n_examples": 6}, lambda sizes: cut(sizes, 6)),
    "LabelNoise": ({"share": 0.5}, list),
    **{
        name: ({}, list)
        for name in ("ContextShuffle", "EpisodeReverse", "EpisodeShuffle", "WordReverse")
        + ("WordShuffle", "WithoutOpenings")
    },
}


def cut(sizes, n_examples):
    ends = list(itertools.accumulate(sizes))
    pairs = zip(sizes, ends)
    return [min(s, n_examples - (e - s)) for s, e in pairs if e - s < n_examples]


def made(names):
    functions = [registry.mutators.get(f"thincdialog.{name.split()[0]}.v1") for name in names]
    return [function(**MUTATORS[name][0]) for function, name in zip(functions, names)]


@given(st.lists(st.sampled_from(sorted(MUTATORS)), max_size=4))
@settings(max_examples=60)
def test_mutators_counts_ids_epochs_and_streams(names):
    sizes, wanted = SIZES, None
    for name in names:
        sizes = MUTATORS[name][1](sizes)
    for streaming in (False, True):
        shown = teacher(made(names), streaming)
        if not streaming:
            assert shown.n_examples == sum(sizes) and shown.n_episodes == len(sizes)
        first, second = epoch(shown), epoch(shown, 1)
        wanted = wanted or facts(first)
        # The second epoch does not depend on the first one.
        assert facts(first) == facts(second) == wanted
        assert len(first) == sum(sizes) == len({m["id"] for m in first})
    if "LabelNoise" not in names:
        evaluated = teacher(made(names), training=False)
        assert facts(epoch(evaluated)) == wanted
    # If no example is left out and no text is changed, all words are still there.
    if not {"Limit", "Limit of examples"} & set(names):
        words = Counter(word for _, text, _ in wanted for word in text.split())
        assert words == Counter(w for part in data() for text, _ in part for w in text.split())


def test_mutators_in_a_config_keep_their_order():
    steps = [("Limit", "n_episodes = {n}"), ("Flatten", ""), ("Limit", "n_episodes = 4")]
    blocks = [
        f'[tasks.t.mutators.*.{place}]\n@mutators = "thincdialog.{name}.v1"\n{arguments}'
        for place, (name, arguments) in enumerate(steps)
    ]
    text = "\n".join([
        '[tasks.t]\n@teachers = "thincdialog.CoffeeOrder.v1"\nn_train = 5', *blocks,
        '[agent]\n@agents = "thincdialog.RepeatLabel.v1"',
    ])  # fmt: skip
    configs = [resolve_config(load_config(text.format(n=n))) for n in (1, 2)]
    counts = [config["tasks"]["t"].for_split("train").n_examples for config in configs]
    assert counts[1] == 4 >= counts[0]
