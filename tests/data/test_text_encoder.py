import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thincdialog.columns import PickedColumn

from thincdialog.data import TextEncoder
from thincdialog.data.special_tokens import PARTNER_SPEAKS, SELF_SPEAKS, TURN
from thincdialog.data.tokenizers import ByteTokenizer, HashNgramTokenizer, WordTokenizer
from thincdialog.messages import PARTNER, SELF
from thincdialog.metrics import AverageMetric

TEXTS = st.text(st.sampled_from("ab \n\x00\ud800é"), max_size=8)
TURNS = st.tuples(st.sampled_from([PARTNER, SELF]), TEXTS)
CONVERSATIONS = st.lists(st.lists(TURNS, max_size=5), max_size=5)
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
    """Token rows of one conversation before truncation, the obvious way."""
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


def limits_of(batch):
    """The batch, and no limits or one for each of its rows."""
    some = st.lists(st.sampled_from([0, 1, 2, 4, 99]), min_size=len(batch), max_size=len(batch))
    arrays = some.map(lambda limits: np.array(limits, dtype=np.int64))
    return st.tuples(st.just(batch), st.none() | arrays)


BATCHES = st.one_of(CONVERSATIONS, st.lists(TEXTS)).flatmap(limits_of)


@given(TOKENIZERS, OPTIONS, st.lists(BATCHES, max_size=4))
@settings(max_examples=300)
def test_encoder_agrees_with_the_obvious_way(tokenizer, options, batches):
    # Several batches through one encoder, so that what it remembers is used.
    encoder = TextEncoder(tokenizer, **options)
    counts = {"context": [0, 0, 0], "label": [0, 0, 0]}
    for batch, limits in batches:
        if batch and isinstance(batch[0], str):
            kind, encode, measure = "label", encoder.labels, encoder.label_lengths
            whole = [reference_label(tokenizer, text, options) for text in batch]
        else:
            kind, encode, measure = "context", encoder.contexts, encoder.context_lengths
            whole = [reference_context(tokenizer, turns, options) for turns in batch]
        expected = []
        for row, rows in enumerate(whole):
            sizes = [len(rows), options[f"max_{kind}"] or len(rows)]
            size = min(sizes if limits is None else [*sizes, limits[row]])
            expected.append(rows[:size] if kind == "label" else rows[len(rows) - size :])
        measured = measure(batch, limits)
        assert measured.dtype == np.int64
        assert measured.tolist() == list(map(len, expected))
        assert unpack(*encode(batch, limits)) == expected
        cut = [len(a) - len(b) for a, b in zip(whole, expected)]
        counts[kind][0] += len(cut)
        counts[kind][1] += sum(each > 0 for each in cut)
        counts[kind][2] += sum(cut)
    # What was only measured was not counted.
    report = encoder.truncation.report()
    for kind, (n, n_truncated, n_cut) in counts.items():
        assert report[f"truncated_{kind}s"] == AverageMetric(n_truncated, n)
        assert report[f"truncated_{kind}_tokens"] == AverageMetric(n_cut, n_truncated)


def test_encoder_example():
    tokenizer = WordTokenizer()
    tokenizer.build(["hi how are you fine"])
    encoder = TextEncoder(tokenizer, max_context=6, speaker_tokens=True)
    turns = [(PARTNER, "hi"), (SELF, "hi you"), (PARTNER, "how are you")]
    rows, lengths = encoder.contexts([turns, [(PARTNER, "fine")]])
    names = {TURN: "<turn>", PARTNER_SPEAKS: "<partner>", SELF_SPEAKS: "<self>"}
    shown = [names.get(each) or tokenizer.decode([each]) for each in rows[:, 0]]
    assert shown == ["you", "<turn>", "<partner>", "how", "are", "you", "<partner>", "fine"]
    assert rows[:, 1].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert lengths.tolist() == [6, 2]
    assert encoder.truncation.report()["truncated_contexts"].value() == 0.5
    assert encoder.truncation.report()["truncated_context_tokens"].value() == 5
    encoder.truncation.reset()
    assert encoder.truncation.report()["truncated_contexts"] == AverageMetric(0, 0)


def test_encoder_segments_count_lines_of_a_story():
    encoder = TextEncoder(ByteTokenizer(), segments="line", delimiter=False)
    rows, _ = encoder.contexts([[(PARTNER, "A\nB\n\nQ?"), (SELF, "z"), (PARTNER, "C\r\nR?")]])
    assert rows[:, 1].tolist() == [5, 4, 3, 3, 2, 1, 1, 0, 0]


def test_encoder_results_can_be_changed_without_harm():
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


def test_encoder_memory_is_bounded():
    encoder = TextEncoder(ByteTokenizer(), max_cached=1000)
    for i in range(300):
        encoder.contexts([[(PARTNER, f"{i:020d}")]])
        assert len(encoder._store.rows) <= 36


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


class Stored:
    """Conversations and replies as a teacher holds them, for columns that point at them."""


@pytest.mark.parametrize("is_compiled", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(TURNS, max_size=5), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=5),
    OPTIONS,
    TOKENIZERS,
    st.data(),
)
def test_encoder_remembers_examples_by_their_rows(
    is_compiled, conversations, batches, options, tokenizer, data
):
    """Columns that tell their rows give what plain lists give, however often and in
    whatever batches they come, by themselves or in between such lists, with compiled
    kernels or without, and whatever was forgotten meanwhile."""
    if is_compiled:
        pytest.importorskip("numba")
    owner = Stored()
    texts = [turns[-1][1] if turns else "" for turns in conversations]
    encoder, plain = (TextEncoder(tokenizer, **options) for _ in range(2))
    encoder.is_compiled = is_compiled
    for batch in batches:
        rows = np.array([row % len(texts) for row in batch], dtype=np.int64)
        n = len(rows)
        limits = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n))
        limits = None if limits is None else np.array(limits, dtype=np.int64)
        turns = PickedColumn(conversations, rows, owner, "turns")
        labels = PickedColumn(texts, rows, owner, "labels")
        for lazy, name, lengths in (
            (turns, "contexts", "context_lengths"),
            (labels, "labels", "label_lengths"),
        ):
            for cells in (lazy, list(lazy)):
                found = getattr(encoder, name)(cells, limits)
                expected = getattr(plain, name)(list(lazy), limits)
                assert [each.tolist() for each in found] == [each.tolist() for each in expected]
                assert [each.dtype for each in found] == [np.int32, np.int32]
                measured = getattr(encoder, lengths)(cells, limits)
                assert measured.dtype == np.int64
                assert measured.tolist() == expected[1].tolist()
    assert encoder.truncation.report() == plain.truncation.report()


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=8), OPTIONS, TOKENIZERS, st.data())
def test_encoder_distinct_labels_are_those_of_first_sight(texts, options, tokenizer, data):
    n = len(texts)
    limits = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n))
    encoder, plain = (TextEncoder(tokenizer, **options) for _ in range(2))
    different = list(dict.fromkeys(texts))
    lowest = limits and [
        min(limit for limit, text in zip(limits, texts) if text == each) for each in different
    ]
    as_array = lambda numbers: None if numbers is None else np.array(numbers)  # noqa: E731
    numbers, found = encoder.distinct_labels(texts, as_array(limits))
    assert numbers.tolist() == [different.index(text) for text in texts]
    expected = plain.labels(different, as_array(lowest))
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]
    assert encoder.truncation.report() == plain.truncation.report()


def test_encoder_labels_of_no_text_have_no_limit_to_keep():
    encoder = TextEncoder(ByteTokenizer())
    numbers, (tokens, lengths) = encoder.distinct_labels([], np.zeros(0, dtype=np.int64))
    assert len(numbers) == len(lengths) == 0 and tokens.shape == (0, 2)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.lists(TURNS, max_size=5), TEXTS), max_size=8),
    st.lists(TEXTS, max_size=3),
    st.integers(1, 3),
    st.booleans(),
    OPTIONS,
    TOKENIZERS,
    st.data(),
)
def test_encoder_packs_what_it_encodes(
    examples, more, n_segments, are_lazy, options, tokenizer, data
):
    pytest.importorskip("numba")
    conversations, texts = [turns for turns, _ in examples], [text for _, text in examples]
    labels = [*texts, *more]

    def drawn(n):
        limits = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n))
        return None if limits is None else np.array(limits, dtype=np.int64)

    limits = drawn(len(examples)), drawn(len(labels))
    encoder, plain = (TextEncoder(tokenizer, **options) for _ in range(2))
    shown = conversations
    if are_lazy:
        rows = np.arange(len(examples))
        owner = Stored()
        shown = PickedColumn(conversations, rows, owner, "turns")
        if not more:
            labels = PickedColumn(labels, rows, owner, "labels")
    for _ in range(2):
        packed = encoder.pack(encoder.find(shown, labels), n_segments, limits)
        tokens, lengths = plain.contexts(conversations, limits[0])
        numbers, (label_tokens, label_lengths) = plain.distinct_labels(list(labels), limits[1])
        expected = tokens[:, 0] * n_segments + np.minimum(tokens[:, 1], n_segments - 1)
        assert packed.contexts.tolist() == expected.tolist()
        assert packed.context_starts.tolist() == [0, *lengths.cumsum().tolist()]
        assert packed.labels.tolist() == label_tokens[:, 0].tolist()
        assert packed.label_starts.tolist() == [0, *label_lengths.cumsum().tolist()]
        assert packed.numbers.tolist() == numbers.tolist()
    assert encoder.truncation.report() == plain.truncation.report()
    of_contexts = encoder.pack(encoder.find(shown), n_segments, (limits[0], None))
    assert of_contexts.contexts.tolist() == packed.contexts.tolist()
    assert not len(of_contexts.labels) and not len(of_contexts.numbers)
