"""The last lines after training: the meaning of the score, and the next commands for the model."""

import argparse
from typing import Any, Iterator

from .arguments import command_line, with_code


def last_lines(result: Any, arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the score in words, how to try the model, and the next step.

    result (Result): Result of ``train``.
    arguments (Namespace): The arguments of the command.
    """
    split = ["", *result.scores][-1]
    if not split:
        hint = "hold some out, for example with --tasks.NAME.dev_share 0.1"
        yield f"There is no score, because there is no dev or test data: {hint}."
    elif result.score_name in result.scores[split]:
        yield in_words(result, split)
    if result.output is None:
        yield "The model was not kept, because of --no-output."
        return
    model, code = str(result.output / "model-best"), with_code(arguments)
    if result.can_chat and result.has_classes:
        yield f"Classify a text: echo 'Hello!' | {command_line('predict', model, '-', *code)}"
    elif result.can_chat:
        yield f"Talk to it: {command_line('chat', model, *code)}"
    if split and (result.reads_files or code):  # The data is the user's own.
        yield f"Measure it in detail: {command_line('evaluate', model, '--split', split, *code)}"
    elif split:
        config = "intent.cfg" if result.has_classes else "ranker.cfg"
        yield f"Train on your own data: {command_line('init', 'config', config)}"


def in_words(result: Any, split: str) -> str:
    """Describe a run's score on a split in words."""
    from ..metrics import higher_is_better

    name, value = result.score_name, result.scores[split][result.score_name]
    if name not in ("hits@1", "accuracy"):
        better = {True: ": higher is better", False: ": lower is better", None: ""}
        return f"{name} = {value:.3f} on the {split} data{better[higher_is_better(name)]}."
    n, sizes = sum(result.choices.values()), list(result.choices)
    among = f"{sizes[0]:,} candidates" if len(sizes) == 1 and sizes[0] else "its candidates"
    right = f"the right {'class' if result.has_classes else 'reply'}"
    did = f"ranked {right} first among {among}" if name == "hits@1" else f"predicted {right}"
    rounded = f"{value:.3f}"  # Round once, so that both numbers agree.
    share = f"{100 * float(rounded):.1f} % of the {f'{n:,} {split}' if n else split} examples"
    return f"{name} = {rounded}: for {share}, the model {did}."
