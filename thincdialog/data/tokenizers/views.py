"""A tokenizer that combines several tokenizers, each as a view of the same text."""

from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from ...examples.encoded import slice_places
from ...registry import registry
from ..special_tokens import N_SPECIAL
from ..vocabulary import Progress
from .tokenizer import Tokenizer


@registry.tokenizers("thincdialog.Views.v1")
class ViewsTokenizer(Tokenizer):
    """Encode each text with several tokenizers, so that parts of a model can read the same text in
    different ways. Each part takes the ids of its view (``thincdialog.View.v1``).

    views (Dict[str, Tokenizer]): Tokenizers by the names of their views, one or more; a view is a
        section `[tokenizer.views.name]`.
    RAISES (ValueError): If there are no views.
    """

    def __init__(self, views: Dict[str, Tokenizer]):
        if not views:
            raise ValueError("views needs one tokenizer or more, got none")
        self.views = views

    @property
    def needs_texts(self) -> bool:  # type: ignore[override]
        return any(view.needs_texts for view in self.views.values())

    @property
    def n_ids(self) -> int:
        return max(ids.stop for ids in self.ranges.values())

    @property
    def ranges(self) -> Dict[str, range]:
        """The range of ids of each view, by its name. Special tokens that an agent adds have lower
        ids, outside of all views."""
        found, start = {}, N_SPECIAL
        for name, view in self.views.items():
            found[name] = range(start, start := start + view.n_ids)
        return found

    def build(self, texts: Iterable[str], progress: Optional[Progress] = None) -> None:
        known = list(texts)
        for view in self.views.values():
            if view.needs_texts:
                view.build(known, progress)

    def pieces(self, text: str) -> List[str]:
        return [piece for view in self.views.values() for piece in view.pieces(text)]

    def encode(self, text: str) -> np.ndarray:
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
        found = [view.encode_many(texts) for view in self.views.values()]
        n_of_text = np.zeros(len(texts), dtype=np.int64)
        for _, lengths in found:
            n_of_text += lengths
        joined = np.empty(int(n_of_text.sum()), dtype=np.int32)
        starts = n_of_text.cumsum() - n_of_text
        for (ids, lengths), own in zip(found, self.ranges.values()):
            joined[slice_places(starts, lengths)] = ids + own.start
            starts += lengths
        return joined, n_of_text

    def decode(self, ids: Iterable[int]) -> str:
        """Return the texts of all views, separated by spaces."""
        known = list(ids)
        return " ".join(
            view.decode(each - own.start for each in known if each in own)
            for view, own in zip(self.views.values(), self.ranges.values())
        )

    def to_disk(self, folder: Path) -> None:
        for name, view in self.views.items():
            view.to_disk(folder / name)

    def from_disk(self, folder: Path) -> None:
        for name, view in self.views.items():
            view.from_disk(folder / name)
