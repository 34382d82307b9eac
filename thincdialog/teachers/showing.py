"""What an epoch of a teacher shows: the chosen examples of a split, as messages."""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..messages import PARTNER, SELF, SILENCE, Message, Turn
from .candidates import CandidateSampler
from .cursor import Block, Cursor
from .order import block_order, sample_episodes
from .split import Split

Columns = Dict[str, Sequence[Any]]


class Showing:
    """A split with the choices of ``Teacher.for_split`` (see there).

    data (Split): Where the episodes come from.
    training (bool): Shuffle, and call labels `labels`; else `eval_labels`.
    max_examples (int): Size of the sample; 0 for all.
    n_candidates (int): Candidates drawn for each example; 0 for none.
    seed (int): Seed of the sample, of the candidates, and of the first epoch.
    cursor (Cursor): The place in the epoch.
    """

    def __init__(
        self, data: Split, training: bool, max_examples: int, n_candidates: int, seed: int
    ):
        self.data = data
        self.training = training
        self.label_name = "labels" if training else "eval_labels"
        self.max_examples = max_examples
        self.n_candidates = n_candidates
        self.seed = seed
        self.cursor = Cursor(self.blocks, 0, seed)
        self._picked: Optional[List[int]] = None
        self._sampler: Optional[CandidateSampler] = None

    def picked(self) -> Optional[List[int]]:
        """Numbers of the sampled episodes, ascending; None for all of them."""
        if self.max_examples and self._picked is None:
            lengths = self.data.lengths()
            self._picked = sample_episodes(lengths, self.max_examples, self.seed).tolist()
        return self._picked

    def blocks(self, epoch: int, seed: int) -> Iterator[Block]:
        """The episodes in the order of an epoch."""
        for number, (store, members) in enumerate(self.data.blocks(self.picked())):
            if self.training:
                order = block_order(len(members), seed, epoch, number).tolist()
                members = [members[position] for position in order]
            yield Block(store, store.fields(self.label_name), members)

    def message(self, block: Block, turn: int, is_last: bool) -> Message:
        """One turn.

        block (Block): Where it stands.
        turn (int): Its number in the block's store.
        is_last (bool): Whether it ends its episode.
        """
        message = block.store.message(turn, block.fields)
        message["episode_done"] = is_last
        if self.n_candidates and "label_candidates" not in message:
            labels = message.get(self.label_name)
            if labels:
                message["label_candidates"] = self._draw(message["id"], labels)
        return message

    def batch(self, n_rows: int) -> Tuple[Columns, int]:
        """The next single-turn examples in columns.

        n_rows (int): Rows wanted.
        RETURNS (Tuple[Columns, int]): Columns, and the number of rows; fewer
            than wanted, or 0, at the end of the epoch.
        """
        cursor = self.cursor
        columns: Columns = {}
        n_taken = 0
        while n_taken < n_rows and not cursor.is_exhausted():
            block, rows = cursor.take(n_rows - n_taken)
            part: Columns = {name: [values[row] for row in rows] for name, values in block.fields}
            columns = _joined(columns, n_taken, part, len(rows)) if n_taken else part
            n_taken += len(rows)
        columns["episode_done"] = [True] * n_taken
        if self.n_candidates and self.label_name in columns:
            given = columns.get("label_candidates", [None] * n_taken)
            columns["label_candidates"] = [
                known or (self._draw(name, labels) if labels else None)
                for known, name, labels in zip(given, columns["id"], columns[self.label_name])
            ]
        return columns, n_taken

    def examples(self) -> Iterator[Message]:
        """Every example in the order of the data, flattened."""
        for store, members in self.data.blocks(self.picked()):
            block = Block(store, store.fields(self.label_name), members)
            for episode in members:
                start, end = store.starts[episode], store.starts[episode + 1]
                history: List[Turn] = []
                for turn in range(start, end):
                    message = self.message(block, turn, True)
                    if end - start > 1:
                        message.setdefault("context", list(history))
                        if message.get("text") != SILENCE:
                            history.append((PARTNER, message.get("text", "")))
                        history.extend((SELF, label) for label in message.all_labels[:1])
                    yield message

    @property
    def n_episodes(self) -> Optional[int]:
        """Number of episodes; None while unknown for a stream."""
        if not self.data.is_counted:
            return None
        picked = self.picked()
        return len(self.data.lengths()) if picked is None else len(picked)

    @property
    def n_examples(self) -> Optional[int]:
        """Number of examples; None while unknown for a stream."""
        if not self.data.is_counted:
            return None
        lengths, picked = self.data.lengths(), self.picked()
        return sum(lengths) if picked is None else sum(lengths[number] for number in picked)

    def _draw(self, example_id: str, labels: Sequence[str]) -> List[str]:
        if self._sampler is None:
            self._sampler = CandidateSampler(self.data.replies(), self.n_candidates, self.seed)
        return self._sampler.candidates(example_id, labels[0])


def _joined(first: Columns, n_first: int, second: Columns, n_second: int) -> Columns:
    """The rows of two column groups; None where one of them lacks a column."""
    return {
        name: [*first.get(name, [None] * n_first), *second.get(name, [None] * n_second)]
        for name in {**first, **second}
    }
