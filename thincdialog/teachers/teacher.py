"""The base of all teachers: agents whose acts come from data."""

import copy
from itertools import islice
from typing import Callable, Dict, Iterator, List, Optional, Sequence

from ..errors import DataError
from ..formats.wording import nearest
from .arguments import Mutators, mutator_list
from .mutating import Episode
from .presenter import Presenter
from .scores import Scores
from .showing import Showing
from .split import Source, Split


class Teacher(Presenter):
    """Shows the examples of a split, each exactly once an epoch, and scores replies.

    A teacher knows its splits; ``for_split`` gives one that acts. Copies
    (``clone``) share its place in the epoch and its scores: each takes the next
    episode when its own has ended, so any number of them shows every example once.
    Whether a copy has anything left (``epoch_done``) can change when another acts:
    ask right before its ``act``.

    Evaluation keeps the order of the data. Training cuts the episodes, in that
    order, into blocks of ``shuffle_window`` and permutes each block by (seed, epoch,
    block): the same examples in the same order, streaming or in memory.

    sources (Dict[str, Source]): Split name to a function that gives its episodes:
        lists of messages with `text` ("" beside `features`) and `labels`. It must give the
        same ones at each call, in new ``Message`` objects, which the teacher changes.
        A message without `id` gets `<number of its episode>/<turn>`. One that can begin
        anywhere has a method `read_from` (see ``FileSource``).
    candidates (Optional[Callable]): Gives one list of candidates for all messages.
    mutators (Mutators): Applied in order at reading (see ``mutators.mutator``).
    streaming (bool): Read the data for every epoch instead of holding it. A run that
        goes on reads files from its place on (see ``restore``).
    single_turn (bool): Whether all episodes are known to have a single turn before
        mutators; in memory it is found out.
    shuffle_window (int): Episodes in a block, 1 or more; what a stream holds.
    origin (str): What the data is, for error messages; the task's name if "".
    text_fields (Sequence[str]): Of `text` and `labels`, those that together hold
        every text once.
    endless (bool): In training, show the data again, in another order, wherever it ends:
        such an epoch has no end. It is streamed, so that it may have none either.
    """

    def __init__(
        self,
        sources: Dict[str, Source],
        *,
        candidates: Optional[Callable[[], List[str]]] = None,
        mutators: Mutators = None,
        streaming: bool = False,
        single_turn: bool = False,
        shuffle_window: int = 65536,
        origin: str = "",
        text_fields: Sequence[str] = ("text", "labels"),
        endless: bool = False,
    ):
        if shuffle_window < 1:
            raise ValueError(f"shuffle_window = {shuffle_window}, expected 1 or more episodes")
        self.task = "task"
        self.split = ""
        self.training = False
        self.origin = origin
        steps = mutator_list(mutators)
        self._data = {
            name: Split(
                name,
                source,
                mutators=steps,
                candidates=candidates,
                streaming=streaming or endless,
                single_turn=single_turn,
                window=shuffle_window,
                origin=origin or self.task,
                text_fields=text_fields,
                endless=endless,
            )
            for name, source in sources.items()
        }
        super().__init__(None, Scores())

    @property
    def id(self) -> str:  # type: ignore[override]
        """The task's name."""
        return self.task

    @property
    def splits(self) -> List[str]:
        """Names of the splits that there is data for."""
        return list(self._data)

    def check_sources(self) -> None:
        """See that the files of all splits are there, before any of them is read.

        RAISES (DataError): If one cannot be read.
        """
        for split in self._data.values():
            split.check_source()

    def files(self, split: str) -> List[str]:
        """The files that a split is read from, in their order, that of the fixed
        candidates last; none if it is made otherwise."""
        return self._data[split].files()

    def is_streamed(self, split: str) -> bool:
        """Whether a split is read for every epoch instead of being held."""
        return self._data[split].streaming

    def first_episodes(self, split: str, n_episodes: int) -> Iterator[Episode]:
        """The first episodes of a split in the order of the data, with `labels`, read once
        more: no more than these, unless a mutator has to see everything.

        n_episodes (int): How many, if there are as many.
        RAISES (DataError): If there is none.
        """
        return islice(self._data[split].episodes(), n_episodes)

    def for_split(
        self,
        split: str,
        *,
        training: bool = False,
        max_examples: int = 0,
        n_candidates: int = 0,
        seed: int = 0,
    ) -> "Teacher":
        """A teacher that acts on one split. Data in memory is read once, on first
        use, and shared by all teachers of the split.

        split (str): One of ``splits``.
        training (bool): Messages with `labels`, shuffled; else `eval_labels`, in order.
        max_examples (int): Use a seeded sample of that many examples (of longer
            episodes: whole ones until there are as many); 0 for all.
        n_candidates (int): In evaluation, give each example without candidates its
            first label and other replies of the split as `label_candidates`, all
            different and this many altogether, drawn by (seed, example id); 0 for none.
        seed (int): Seed of the sample, of the candidates, and of the first epoch.
        RAISES (DataError): If there is no such split.
        """
        if split not in self._data:
            have = ", ".join(self._data) or "none"
            text = f"there is no split '{split}'{nearest(split, self.splits)} (there is: {have})"
            raise DataError(self.origin or self.task, f"{text}; give the path of its data")
        teacher = copy.copy(self)
        teacher.split = split
        teacher.training = training
        n_drawn = 0 if training else n_candidates
        showing = Showing(self._data[split], training, max_examples, n_drawn, seed)
        if showing.is_endless and max_examples:
            text = "never ends, so no sample can be drawn: leave max_examples at 0"
            raise DataError(showing.origin, text)
        Presenter.__init__(teacher, showing, Scores())
        return teacher
