"""Data and helpers for the tests of orders, batches and mixtures."""

import json
from itertools import count
from typing import Callable, List, NamedTuple

from hypothesis import strategies as st

from thincdialog.batchers import Batchsort, Fixed, Padded, Words
from thincdialog.messages import Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher, Teacher, mix_tasks

NAMES = "abc"
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=20)
UNITS = st.sampled_from(["episodes", "examples", "words"])
WEIGHTS = st.none() | st.lists(st.sampled_from([1, 2, 0.1, 5, 0.75]), min_size=3, max_size=3)
BATCHERS = st.one_of(
    st.builds(Fixed, st.integers(1, 9)),
    st.builds(Batchsort, st.integers(1, 9), st.integers(1, 40)),
    st.builds(Words, st.integers(12, 60), st.booleans(), st.integers(1, 40)),
    st.builds(Words, st.integers(1, 20), st.booleans(), st.integers(1, 9), st.just("truncate")),
    st.builds(Padded, st.integers(1, 60), st.integers(1, 40)),
)


def through_json(value):
    return json.loads(json.dumps(value))


def episodes(sizes, prefix=""):
    """Make episodes with the given numbers of turns. Turn t of episode n has
    (n * 7 + t) % 11 more words."""
    return [
        [
            (f"{prefix}{number}.{turn}" + " word" * ((number * 7 + turn) % 11), f"label {number}")
            for turn in range(size)
        ]
        for number, size in enumerate(sizes)
    ]


def make_teacher(sizes, *, streaming=False, window=4, flat=False, training=True, **settings):
    made = IterableTeacher(
        {"train": episodes(sizes)},
        streaming=streaming,
        shuffle_window=window,
        mutators=[Flatten()] if flat else None,
        **settings,
    )
    return made.for_split("train", training=training)


def endless(name, size=None, flat=True):
    """Make a task that never ends: its source has no end, or is a short one that is repeated."""

    def source():
        numbers = count() if size is None else range(size)
        return ([(f"{name} {number}", f"label {number}")] for number in numbers)

    choices = {"shuffle_window": 5, "mutators": [Flatten()] if flat else None, "task": name}
    made = IterableTeacher({"train": source}, endless=True, **choices)
    return made.for_split("train", training=True)


def mix(many_sizes, weights=None, unit="examples", repeat=False, **choices):
    tasks = {name: make_teacher(each, **choices) for name, each in zip(NAMES, many_sizes)}
    given_weights = None if weights is None else dict(zip(tasks, weights))
    return mix_tasks(tasks, weights=given_weights, unit=unit, repeat=repeat)


def ids_of(sizes, prefix=""):
    return [f"{prefix}{number}/{turn}" for number, size in enumerate(sizes) for turn in range(size)]


def all_ids(many_sizes):
    """Return the ids of all examples that ``mix`` shows."""
    if len(many_sizes) == 1:
        return ids_of(many_sizes[0])
    return [name for task, each in zip(NAMES, many_sizes) for name in ids_of(each, f"{task}/")]


class Case(NamedTuple):
    """Data, and the way in which it is shown.

    make: Makes a new teacher of the data.
    ids: Ids of all examples.
    is_flat: Whether the examples can be shown in batches.
    """

    make: Callable[[], Teacher]
    ids: List[str]
    is_flat: bool


@st.composite
def cases(draw, shown_once=True):
    """Draw one task or a mixture of several, in memory or streamed, shuffled or not. Unless each
    example must be shown once, tasks may be repeated, and one task may have no end."""
    many_sizes = draw(st.lists(SIZES, min_size=1, max_size=3))
    names = ("training", "streaming", "flat")
    choices = {name: draw(st.booleans()) for name in names}
    choices["window"] = draw(st.integers(1, 25))
    weights, unit = draw(WEIGHTS), draw(UNITS)
    repeat, endless_size = (not shown_once and draw(st.booleans())), None
    if not shown_once and choices["training"]:
        endless_size = draw(st.sampled_from([None, 6, 1]))

    def make():
        if endless_size is None:
            return mix(many_sizes, weights, unit, repeat, **choices)
        tasks = {name: make_teacher(each, **choices) for name, each in zip(NAMES, many_sizes)}
        given_weights = None if weights is None else {**dict(zip(tasks, weights)), "e": 1}
        tasks["e"] = endless("e", endless_size)
        return mix_tasks(tasks, weights=given_weights, unit=unit, repeat=repeat)

    return Case(make, all_ids(many_sizes), choices["flat"])


def answer_batch(teacher):
    """Answer the next batch. Return its ids."""
    batch = teacher.batch_act()
    teacher.batch_observe([Message(text="reply")] * len(batch))
    return batch.ids()


def whole_batches(teacher, reply="reply"):
    """Yield each batch to the end of the epoch, and answer it afterwards."""
    while not teacher.epoch_done():
        batch = teacher.batch_act()
        yield batch
        teacher.batch_observe([Message(text=reply)] * len(batch))


def batches_left(teacher):
    """Answer each batch to the end of the epoch. Return the ids of each."""
    return [batch.ids() for batch in whole_batches(teacher)]


def check_resumes(make, n_rounds, n_copies, n_more=None):
    """Check that copies of a new teacher, restored from a state, continue as the copies from which
    the state was taken. Return the state.

    n_rounds: Number of rounds before the state is taken.
    n_more: Number of rounds after it to compare; None: to the end of the epoch.
    """
    original = make()
    copies = [original.clone() for _ in range(n_copies)]
    rounds(copies, n_rounds)
    state, places = through_json([original.state(), [copy.place() for copy in copies]])
    again = make().restore(state, places)
    assert rounds(again, n_more) == rounds(copies, n_more)
    return state


def rounds(copies, n_rounds=None):
    """Return the ids of the messages of the copies, which act in turn, to the end of the epoch or
    for a number of rounds."""
    said = []
    while n_rounds is None or n_rounds > 0:
        live = False
        for copy in copies:
            if not copy.epoch_done():
                live = True
                message = copy.act()
                said.append(message["id"])
                copy.observe(Message(text="reply"))
        if not live:
            break
        if n_rounds is not None:
            n_rounds -= 1
    return said


def write_spoken(path, *speakers):
    """Write a file of conversations of two turns: "user" speaks, then one of these speakers.

    RETURNS (str): The path of the file.
    """
    turns = (
        [{"speaker": who, "text": f"{who} {number % 7}"} for who in ("user", speaker)]
        for number, speaker in enumerate(speakers)
    )
    path.write_text("".join(json.dumps({"turns": each}) + "\n" for each in turns))
    return str(path)
