"""Mixtures in memory: they are read by columns, and give the same batches as streams."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples.talk import batches_left, whole_batches
from tests.processes import slow
from thincdialog.api import Message, registry
from thincdialog.batchers import Batchsort, Fixed, Padded, Words
from thincdialog.data import TextEncoder
from thincdialog.data.tokenizers import HashNgramTokenizer
from thincdialog.loader.readers import Readers
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.teachers import Teacher, mix_tasks
from thincdialog.worlds import BatchWorld

WORDS = st.lists(st.sampled_from("abcd"), max_size=4).map(" ".join)
EXAMPLE = st.fixed_dictionaries(
    {"text": WORDS},
    optional={
        "labels": st.lists(WORDS, min_size=1, max_size=2),
        "context": st.lists(st.tuples(st.sampled_from([0, 1]), WORDS), max_size=2),
        "mood": st.integers(0, 9),
    },
)
TASKS = st.lists(st.lists(EXAMPLE, min_size=1, max_size=12), min_size=2, max_size=3)
BATCHERS = st.sampled_from([Fixed(3), Batchsort(4, 2), Words(15, True, 3), Padded(40, 9)])
BATCHERS |= st.just(Words(4, True, 3, "truncate"))


def mixture(tasks, weights, streaming, *, training=True, repeat=False, window=5):
    def source(rows):
        return lambda: ([Message(row)] for row in rows)

    shown = {
        name: Teacher(
            {"train": source(rows)}, streaming=streaming, single_turn=True, shuffle_window=window
        ).for_split("train", training=training)
        for name, rows in zip("abc", tasks)
    }
    # The weights must be given, because the sizes of streams are not known.
    return mix_tasks(shown, weights=dict(zip(shown, weights)), repeat=repeat)


@given(
    TASKS,
    st.lists(st.sampled_from([1, 2, 0.5]), min_size=3, max_size=3),
    BATCHERS,
    st.booleans(),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 2), (1, 2)]),
)
def test_mixture_in_memory_has_the_batches_of_streams(
    tasks, weights, batcher, training, repeat, share
):
    shown = []
    for streaming in (False, True):
        teacher = mixture(tasks, weights, streaming, training=training, repeat=repeat)
        teacher = teacher.share_of(*share)
        teacher.set_metrics([Accuracy()])
        teacher.set_batches(batcher)
        batches = []
        for epoch in range(2):
            teacher.start_epoch(epoch, 3)
            for batch in whole_batches(teacher, "a b"):
                batches.append(list(batch))
                assert batch.store.is_held is not streaming
        shown.append((batches, {k: metric.value() for k, metric in teacher.report().items()}))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("with_metrics", [False, True])
def test_mixture_counts_the_examples_of_each_task(with_metrics):
    rows = [{"text": str(number), "labels": ["x"]} for number in range(6)]
    teacher = mixture([rows, rows[:2]], [3, 1], False)
    teacher.set_metrics([Accuracy()] if with_metrics else [])
    teacher.set_batches(Fixed(3))
    batches_left(teacher)
    report = teacher.report()
    counts = {name: report[name].value() for name in report if name.endswith("examples")}
    assert counts == {"examples": 8, "a/examples": 6, "b/examples": 2}


def trained(teacher, kind, ops, batcher):
    """Train for two epochs. Return the weights and the losses."""
    get = {name: getattr(registry, name).get for name in ("models", "agents", "optimizers")}
    with using_ops(get_dialog_ops(-1, ops)):
        if kind == "StarSpace":
            model = get["models"]("thincdialog.StarSpace.v1")(width=8)
            optimizer = get["optimizers"]("thincdialog.SparseAdagrad.v1")(0.1)
        else:
            encoder = get["models"]("thincdialog.BagEncoder.v1")(width=8)
            model = get["models"]("thincdialog.BiEncoder.v1")(encoder)
            optimizer = get["optimizers"]("Adam.v1")(0.01)
        agent = get["agents"](f"thincdialog.{kind}.v1")(model, history_size=2)
        agent.initialize(teacher, tokenizer=registry.tokenizers.get("thincdialog.Words.v1")())
    losses = []
    with BatchWorld(teacher, agent, batcher) as world:
        for epoch in range(2):
            world.start_epoch(epoch, 0)
            agent.reset_metrics()
            while not world.epoch_done():
                agent.begin_microbatch(0, epoch, 0)
                world.parley()
                agent.update(optimizer)
            losses.append({k: metric.value() for k, metric in agent.report().items()})
    return agent.parameters.values, losses


@pytest.mark.parametrize("batcher", [Fixed(4), Words(30, True, 3)], ids=["fixed", "words"])
@pytest.mark.parametrize(
    "kind, ops", [slow("Ranker", "numpy"), ("Ranker", "fast"), ("StarSpace", "fast")]
)
def test_mixture_in_memory_trains_bit_for_bit_like_streams(kind, ops, batcher):
    if ops == "fast":
        pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), n)) for n in rng.integers(1, 9, 120)]
    rows = [{"text": a, "labels": [b]} for a, b in zip(texts, texts[1:])]
    told = [{**row, "context": [(0, text)]} for row, text in zip(rows, texts[2:])]
    del told[3]["labels"]
    values, losses = zip(
        *(
            trained(mixture([told, rows[:50]], [2, 1], streaming), kind, ops, batcher)
            for streaming in (False, True)
        )
    )
    assert losses[0] == losses[1]
    assert values[0].tobytes() == values[1].tobytes()


def test_mixture_of_encoded_streams_numbers_only_the_labels_of_its_batches():
    """It does not number the labels of whole blocks again for each batch."""
    some = [{"text": f"q {n}", **({"labels": [f"a {n % 20}"]} if n % 3 else {})} for n in range(50)]
    shown = []
    for streaming in (False, True):
        teacher = mixture([some, some[10:]], [1, 1], streaming, window=99)
        encoder = TextEncoder(HashNgramTokenizer(ngrams=1))
        for task in teacher.by_task().values():
            task.read_with(Readers(0), lambda encoder=encoder: encoder.encoding)
        teacher.set_batches(Fixed(6))
        batches = []
        for batch in whole_batches(teacher):
            labelled = batch.labelled()
            batches.append((batch.ids(), labelled.first_labels(), repr(encoder.pairs(labelled))))
            if streaming and len(set(batch.tasks.tolist())) == 2:
                assert batch.store.encoder_keys and len(batch.store.label_texts) <= 6
        shown.append(batches)
    assert shown[0] == shown[1] and len(shown[0]) == 15
