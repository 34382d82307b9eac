import gc
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.data import TextEncoder
from thincdialog.data.special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN
from thincdialog.data.text_encoder import counting
from thincdialog.data.tokenizers import ByteTokenizer, HashNgramTokenizer, WordTokenizer
from thincdialog.examples import Batch, MemoryStore, Store
from thincdialog.examples.candidates import CandidateSampler, WithCandidates
from thincdialog.examples.joined_store import JoinedStore
from thincdialog.messages import PARTNER, SELF, Message

TEXTS = st.text(st.sampled_from("ab \n\x00\ud800é"), max_size=8)
TURNS = st.tuples(st.sampled_from([PARTNER, SELF]), TEXTS)
OPTIONS = st.fixed_dictionaries(
    {
        "history_size": st.sampled_from([-1, 1, 2, 3]),
        "max_context": st.sampled_from([0, 1, 2, 5, 9]),
        "max_label": st.sampled_from([0, 1, 3]),
        "delimiter": st.booleans(),
        "speaker_tokens": st.booleans(),
        "segments": st.sampled_from(["turn", "line"]),
        "max_cached": st.sampled_from([0, 20, 1 << 20]),
    }
)
TOKENIZERS = st.sampled_from([ByteTokenizer(), HashNgramTokenizer(n_rows=50)])


def units(text, segments):
    if segments == "turn":
        return [text]
    return [line for line in text.split("\n") if line.strip()] or [""]


def reference_context(tokenizer, turns, options):
    """Compute the token rows of one conversation before truncation, in the obvious way."""
    if options["history_size"] > 0:
        turns = turns[-options["history_size"] :]
    rows = []
    unit = -1
    for i, (role, text) in enumerate(turns):
        lines = units(text, options["segments"])
        if options["speaker_tokens"]:
            rows.append([SELF_SPEAKS if role == SELF else PARTNER_SPEAKS, unit + 1])
        for line in lines:
            unit += 1
            rows.extend([int(each), unit] for each in tokenizer.encode(line))
        if options["delimiter"] and i < len(turns) - 1:
            rows.append([TURN, unit])
    return [[each, unit - at] for each, at in rows]


def reference_label(tokenizer, text, options):
    lines = units(text, options["segments"])
    return [
        [int(each), len(lines) - 1 - at]
        for at, line in enumerate(lines)
        for each in tokenizer.encode(line)
    ]


def unpack(rows, lengths):
    assert rows.dtype == np.int32 and lengths.dtype == np.int32
    assert rows.shape == (lengths.sum(), 2)
    return (
        [part.tolist() for part in np.split(rows, np.cumsum(lengths)[:-1])] if len(lengths) else []
    )


def with_limits(size):
    """Draw limits of the contexts and labels of ``size`` rows, or no limits."""
    limits = st.lists(
        st.none() | st.tuples(*[st.sampled_from([0, 1, 2, 4, 99])] * 2),
        min_size=size,
        max_size=size,
    )
    return st.just([None] * size) | limits


EXAMPLES = st.lists(st.tuples(st.lists(TURNS, max_size=5), TEXTS), max_size=6)
BATCHES = st.lists(
    EXAMPLES.flatmap(lambda rows: st.tuples(st.just(rows), with_limits(len(rows)))), max_size=4
)
KINDS = st.sampled_from(["observed", "held", "streamed", "joined"])


def shown(rows, limits, kind):
    """Make a batch of examples: as observed messages, or as rows of a store in memory, of a
    streamed store, or of two joined stores."""
    messages = []
    for (turns, label), limit in zip(rows, limits):
        message = Message(labels=[label], **({} if limit is None else {"max_tokens": limit}))
        if kind == "observed":
            message.update(turns=turns, text="something else")
        else:
            message.update(context=turns[:-1], text=turns[-1][1] if turns else "")
        messages.append(message)
    batch = Batch.of(messages)
    if kind == "observed":
        return batch
    stores = [MemoryStore(is_held=kind != "streamed") for _ in range(2 if kind == "joined" else 1)]
    for number, message in enumerate(messages):
        store = stores[-1] if number >= len(messages) // 2 else stores[0]
        store.append([Message({k: v for k, v in message.items() if k != "max_tokens"})])
    store = stores[0] if kind != "joined" else JoinedStore(stores)
    return Batch(store, np.arange(len(rows)), max_tokens=batch.max_tokens)


@given(TOKENIZERS, OPTIONS, BATCHES, KINDS)
def test_encoder_agrees_with_the_reference(tokenizer, options, batches, kind):
    """One encoder gets several batches, each of them twice, so that its caches are used."""
    encoder = TextEncoder(tokenizer, **options)
    counts, expected_counts = Counter(), Counter()

    def cut(field, whole, limits):
        """Truncate rows of tokens, and count them and the removed tokens."""
        most = options[f"max_{field}"]
        left = []
        for rows, limit in zip(whole, limits):
            size = min([len(rows), most or len(rows), *([] if limit is None else [limit])])
            left.append(rows[:size] if field == "label" else rows[len(rows) - size :])
            expected_counts[f"{field}s"] += 1
            expected_counts[f"truncated_{field}s"] += size < len(rows)
            expected_counts[f"truncated_{field}_tokens"] += len(rows) - size
        return left

    for rows, limits in batches:
        if kind != "observed":  # The current text is the partner's, and has its own field.
            rows = [
                ([*turns[:-1], (PARTNER, turns[-1][1] if turns else "")], text)
                for turns, text in rows
            ]
        batch = shown(rows, limits, kind)
        of_contexts = [None if limit is None else limit[0] for limit in limits]
        of_labels = [None if limit is None else limit[1] for limit in limits]
        contexts = [reference_context(tokenizer, turns, options) for turns, _ in rows]
        labels = [reference_label(tokenizer, text, options) for _, text in rows]
        texts = [text for _, text in rows]
        for _ in range(2):
            measured = encoder.context_lengths(batch), encoder.label_lengths(batch)
            expected = cut("context", contexts, of_contexts)
            with counting(counts):
                found = encoder.contexts(batch), encoder.contexts([turns for turns, _ in rows])
            assert unpack(*found[0]) == expected
            assert unpack(*found[1]) == cut("context", contexts, [None] * len(rows))
            assert measured[0].tolist() == list(map(len, expected))
            own = [99 if limit is None else limit for limit in of_labels]
            expected = cut("label", labels, of_labels)
            with counting(counts):
                found = encoder.labels(texts, np.array(own, dtype=np.int64))
            assert unpack(*found) == expected
            assert measured[1].tolist() == list(map(len, expected))
            assert encoder.label_lengths(texts).tolist() == [
                min(len(label), options["max_label"] or len(label)) for label in labels
            ]
            # Equal labels are encoded once, within the lowest of their limits.
            different = list(dict.fromkeys(texts))
            lowest = [min(n for n, text in zip(own, texts) if text == each) for each in different]
            whole = [labels[texts.index(each)] for each in different]
            numbered = [different.index(text) for text in texts]
            with counting(counts):
                found, replies, numbers = encoder.pairs(batch)
            assert unpack(*found) == cut("context", contexts, of_contexts)
            assert unpack(*replies) == cut("label", whole, lowest)
            assert numbers.tolist() == numbered and numbers.dtype == np.int32
    assert counts == expected_counts


@pytest.mark.slow
@given(
    TOKENIZERS,
    OPTIONS,
    BATCHES,
    KINDS,
    st.lists(TEXTS, max_size=3),
    st.integers(1, 3),
)
def test_encoder_packs_the_same_tokens_as_it_encodes(
    tokenizer, options, batches, kind, more, n_segments
):
    pytest.importorskip("numba")
    encoder, plain = (TextEncoder(tokenizer, **options) for _ in range(2))
    for rows, limits in batches:
        batch = shown(rows, limits, kind)
        counts = Counter(), Counter()
        with counting(counts[0]):
            packed = encoder.pack(batch, more, n_segments=n_segments)
        with counting(counts[1]):
            tokens, lengths = plain.contexts(batch)
        texts = [text for _, text in rows] + more
        different = list(dict.fromkeys(texts))
        own = [99 if limit is None else limit[1] for limit in limits] + [99] * len(more)
        lowest = [min(n for n, text in zip(own, texts) if text == each) for each in different]
        with counting(counts[1]):
            label_tokens, label_lengths = plain.labels(different, np.array(lowest, dtype=np.int64))
        expected = tokens[:, 0] * n_segments + np.minimum(tokens[:, 1], n_segments - 1)
        assert packed.contexts.tolist() == expected.tolist()
        assert packed.context_starts.tolist() == [0, *lengths.cumsum().tolist()]
        assert packed.labels.tolist() == label_tokens[:, 0].tolist()
        assert packed.label_starts.tolist() == [0, *label_lengths.cumsum().tolist()]
        assert packed.numbers.tolist() == [different.index(text) for text in texts]
        assert counts[0] == counts[1]
        of_contexts = encoder.replica().pack(batch, n_segments=n_segments, has_labels=False)
        assert of_contexts.contexts.tolist() == packed.contexts.tolist()
        assert not len(of_contexts.labels) and not len(of_contexts.numbers)


def test_encoder_example():
    tokenizer = WordTokenizer()
    tokenizer.build(["hi how are you fine"])
    encoder = TextEncoder(tokenizer, max_context=6, speaker_tokens=True)
    turns = [(PARTNER, "hi"), (SELF, "hi you"), (PARTNER, "how are you")]
    counts = Counter()
    with counting(counts):
        rows, lengths = encoder.contexts([turns, [(PARTNER, "fine")]])
    names = {TURN: "<turn>", PARTNER_SPEAKS: "<partner>", SELF_SPEAKS: "<self>"}
    shown = [names.get(each) or tokenizer.decode([each]) for each in rows[:, 0]]
    assert shown == ["you", "<turn>", "<partner>", "how", "are", "you", "<partner>", "fine"]
    assert rows[:, 1].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert lengths.tolist() == [6, 2]
    assert counts == {"contexts": 2, "truncated_contexts": 1, "truncated_context_tokens": 5}


def test_encoder_segments_count_lines_of_a_story():
    encoder = TextEncoder(ByteTokenizer(), segments="line", delimiter=False)
    rows, _ = encoder.contexts([[(PARTNER, "A\nB\n\nQ?"), (SELF, "z"), (PARTNER, "C\r\nR?")]])
    assert rows[:, 1].tolist() == [5, 4, 3, 3, 2, 1, 1, 0, 0]


def test_encoder_results_are_not_shared_with_its_cache():
    encoder = TextEncoder(ByteTokenizer())
    first, _ = encoder.contexts([[(PARTNER, "abc")]])
    before = first.copy()
    first[:] = -1
    assert encoder.contexts([[(PARTNER, "abc")]])[0].tolist() == before.tolist()


def test_encoder_tokenizes_a_turn_once():
    seen = []

    class Counting(ByteTokenizer):
        def encode(self, text):
            seen.append(text)
            return super().encode(text)

    encoder = TextEncoder(Counting())
    for _ in range(3):
        encoder.contexts([[(PARTNER, "a"), (SELF, "b")], [(SELF, "a")]])
        encoder.label_lengths(["c", "d"])
        encoder.labels(["b", "c", "c"])
    assert seen == ["a", "b", "c", "d"]
    batch = shown([([(PARTNER, "e")], "f"), ([(PARTNER, "f")], "f")], [None] * 2, "held")
    for _ in range(3):
        encoder.context_lengths(batch)
        encoder.label_lengths(batch)
        encoder.pairs(batch)
    assert sorted(seen[4:]) == ["e", "f"]


def test_encoder_cache_is_bounded_except_for_data_in_memory():
    encoder = TextEncoder(ByteTokenizer(), max_cached=1000)
    for i in range(300):
        encoder.contexts([[(PARTNER, f"{i:020d}")]])
        assert len(encoder._passing.rows) <= 36
    rows = [([(PARTNER, f"{i:020d}")], "a") for i in range(300)]
    encoder.contexts(shown(rows, [None] * 300, "held"))
    # All turns of a store in memory are cached, by the numbers of their texts.
    assert encoder._kept._n_entries == 300 and not encoder._kept.rows


def test_encoder_does_not_keep_a_store_alive():
    encoder = TextEncoder(ByteTokenizer())
    batch = shown([([(PARTNER, "a")], "b")], [None], "held")
    encoder.pairs(batch)
    gone = weakref.ref(batch.store)
    del batch
    gc.collect()
    assert gone() is None


class Unsteady(Store):
    """A store whose source cannot be read at first. Counts the texts that are read."""

    names, starts, is_ready, n_read = ("id", "text"), range(6000), False, 0

    def cells(self, name, rows):
        self.n_read += len(rows) * (name == "text")
        if not self.is_ready and rows[-1] > 5000:
            raise OSError("the disk is away")
        return [f"{name} {row}" if name in self.names else None for row in rows.tolist()]


def test_encoder_reads_a_store_again_after_an_error():
    encoder, store = TextEncoder(ByteTokenizer()), Unsteady()
    batch = Batch(store, np.array([5998, 0]))
    with pytest.raises(OSError, match="the disk is away"):
        encoder.contexts(batch)
    store.is_ready = True
    rows, lengths = encoder.contexts(batch)
    assert ByteTokenizer().decode(rows[: lengths[0], 0]) == "text 5998"


def test_encoder_reads_a_store_once_for_all_that_show_it_with_candidates():
    encoder, store = TextEncoder(ByteTokenizer()), Unsteady()
    store.is_ready = True
    wanted = encoder.contexts(Batch(store, np.array([7])))[0].tolist()
    for seed in range(2):
        shown = WithCandidates(store, CandidateSampler(["a", "b"], 2, seed))
        assert encoder.contexts(Batch(shown, np.array([7])))[0].tolist() == wanted
    assert store.n_read == store.n_examples


def test_encoder_replicas_in_threads_share_a_cache():
    """Threads share what they have encoded, whichever thread encodes it first."""
    rows = [([(PARTNER, f"{n % 50} a")], f"{n % 7}") for n in range(400)]
    whole = shown(rows, [None] * 400, "held")
    encoder = TextEncoder(ByteTokenizer())
    expected = [
        TextEncoder(ByteTokenizer()).pairs(whole.take(np.arange(n, n + 4))) for n in range(99)
    ]

    def encode(n):
        return encoder.replica().pairs(whole.take(np.arange(n, n + 4)))

    with ThreadPoolExecutor(8) as pool:
        for found, right in zip(pool.map(encode, range(99)), expected):
            assert [each.tolist() for each in (*found[0], *found[1], found[2])] == [
                each.tolist() for each in (*right[0], *right[1], right[2])
            ]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"history_size": 0}, "history_size = 0"),
        ({"max_context": -1}, "max_context = -1"),
        ({"max_label": -1}, "max_label = -1"),
        ({"segments": "word"}, "segments = 'word', expected 'turn' or 'line'"),
    ],
)
def test_encoder_settings_out_of_range_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        TextEncoder(ByteTokenizer(), **options)
