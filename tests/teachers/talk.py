"""Data and runs of the tests of batches, places and mixtures."""

from thincdialog.messages import Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.teachers import IterableTeacher


def episodes(sizes, prefix=""):
    """Episodes of so many turns; turn t of episode n has (n * 7 + t) % 11 more words."""
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


def ids_of(sizes, prefix=""):
    return [f"{prefix}{number}/{turn}" for number, size in enumerate(sizes) for turn in range(size)]


def answer_batch(teacher):
    """The next batch's ids."""
    batch = teacher.batch_act()
    teacher.batch_observe([Message(text="reply")] * len(batch))
    return list(batch.columns["id"])


def batches_left(teacher):
    """The ids of each batch to the end of the epoch."""
    batches = []
    while not teacher.epoch_done():
        batches.append(answer_batch(teacher))
    return batches


def rounds(original, copies, n_rounds=None):
    """What the copies say in turn, to the end of the epoch or for so many rounds."""
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
