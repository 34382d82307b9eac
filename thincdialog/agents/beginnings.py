"""Initialise an agent from a saved model instead of random weights."""

from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from ..data import Tokenizer
from ..data.tokenizers.tokenizer import load_tokenizer
from ..files.json_file import read_state
from ..layers.word_vectors import holds_rows
from ..models.fitting import check_fitting, fit_weights, saved_shapes
from ..teachers import Teacher


class Carried(NamedTuple):
    """Describe what an agent took over from a saved agent, apart from weights.

    lines (Sequence[str]): Messages for the user.
    grown (Tuple[int, int]): Number of classes of the saved agent, and of the new agent. The classes
        of the saved agent are first in the new agent.
    """

    lines: Sequence[str] = ()
    grown: Tuple[int, int] = (0, 0)


def begin_from(
    folder: Path,
    agent: Any,
    train: Teacher,
    tokenizer: Optional[Tokenizer],
    seed: int,
    progress: Optional[Callable[[int], None]],
) -> List[str]:
    """Initialise an agent from a saved model of any agent: take over its tokenizer, its classes or
    candidates (see ``carry_over``), and the weights that fit. Draw the other weights.

    folder (Path): Folder of the saved model.
    agent (ModelAgent): The agent, which has no weights yet.
    train, tokenizer, seed, progress: See ``Agent.initialize``.
    RETURNS (List[str]): Messages for the user about each part, one line each.
    RAISES (ConfigError): If the agent reads text and there is no tokenizer.
    RAISES (ModelError): If no weights fit.
    """
    check_fitting(folder, agent.id)
    agent.survey(train)
    has_state = (folder / "agent.json").is_file()
    carried = read_state(folder, agent.carry_over) if has_state else agent.carry_over({})
    agent.check_tokenizer(tokenizer)
    lines = [*carried.lines]
    if agent.needs_text and tokenizer is not None:
        lines.append(_tokenizer_from(folder, train, tokenizer, progress))
    rows = agent.draw_weights(train, tokenizer, seed, saved_shapes(folder))
    fit = fit_weights(folder, agent.parameters, carried.grown)
    wanted = [shape for _, shape in rows.unread]
    if any(holds_rows(piece.shape, shape) for piece in fit.fresh for shape in wanted):
        # A table of word vectors was expected from the saved model, but does not fit. So draw the
        # weights again, and read its file of vectors.
        rows = agent.draw_weights(train, tokenizer, seed)
        fit = fit_weights(folder, agent.parameters, carried.grown)
    for name in dict.fromkeys(name for name, _ in rows.unread):
        lines.append(f"{name}: not read, as the model has vectors of these words")
    agent.weights_changed()
    return [*lines, *rows.lines, *fit.lines]


def _tokenizer_from(folder: Path, train: Teacher, tokenizer: Tokenizer, progress: Any) -> str:
    if (folder / "tokenizer").is_dir():
        load_tokenizer(tokenizer, folder)
        return f"tokenizer: its {tokenizer.n_ids:,} ids"
    if tokenizer.needs_texts:
        tokenizer.build(train.texts(), progress)
    return "tokenizer: new, as the model has none"
