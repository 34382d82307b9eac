"""``chat``: talk to a saved model, line by line; it can also read from a pipe."""

import argparse
import sys
from contextlib import suppress
from typing import Any, Iterator, List, Optional, TextIO, Tuple

from ..errors import closest
from .arguments import GPU, LOG, MODEL, THRESHOLD, argument, common, named, positive
from .output import coloured, messages

EXAMPLES = [
    "chat output/quickstart/model-best",
    "chat output/ranker/model-best --candidates lines.txt",
    "chat output/ranker/model-best --top 3 --threshold 0.2",
    "chat output/quickstart/model-best < lines.txt > replies.txt",
]

# ParlAI's words for ending a conversation and ending the program, in addition to /reset and /quit.
DONE, EXIT = "[DONE]", "[EXIT]"
COMMANDS = {
    "/reset": "start a new conversation (also [DONE])",
    "/history": "show the conversation so far",
    "/quit": "end (also [EXIT], or end of input)",
    "/help": "show these commands",
}

ARGUMENTS = [
    MODEL,
    argument("--candidates FILE", "file with the replies to choose from, one per line"),
    argument("--top N", "show the N best replies with their probabilities", positive),
    THRESHOLD,
    LOG,
    GPU,
]


def run(arguments: argparse.Namespace) -> None:
    """Load the model and talk until the input ends."""
    from ..api import load
    from ..formats.candidates import read_candidates
    from ..formats.chat_log import ChatLog

    candidates = read_candidates(arguments.candidates) if arguments.candidates else None
    chatbot = load(arguments.model, **common(arguments))
    is_terminal = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if is_terminal:
        messages.info("/help shows the commands, /quit ends. Type \\n for a line break.")
    options = named(arguments, "top", "threshold")
    options["log"] = ChatLog(arguments.log) if arguments.log else None
    talk(chatbot, _lines(is_terminal), is_terminal, candidates, **options)


def talk(
    chatbot: Any,
    lines: Iterator[str],
    is_terminal: bool = False,
    candidates: Optional[List[str]] = None,
    top: Optional[int] = None,
    threshold: Optional[float] = None,
    log: Any = None,
) -> None:
    """Answer each line on stdout, and run the lines that are commands.

    top (Optional[int]): Number of replies to show, each after its probability; outside a terminal,
        an empty line follows them. None shows only the best reply.
    threshold (Optional[float]): Minimum probability of a reply; the model's own threshold if None.
    log (Optional[ChatLog]): Records the conversation up to each reply.
    """
    from ..messages import PARTNER, SELF

    history: List[Tuple[int, str]] = []
    speakers = {PARTNER: "you", SELF: "model"}
    for line in lines:
        line = line.strip()
        if line in ("/quit", EXIT):
            break
        if line in ("/reset", DONE):
            chatbot.reset()
            history.clear()
            messages.info("New conversation")
        elif line == "/history":
            for role, text in history:
                print(f"{speakers[role]:<5}  {_on_one_line(text)}")
        elif line == "/help":
            for name, about in COMMANDS.items():
                messages.info(f"{name:<9} {about}")
        elif line.startswith("/") and " " not in line:
            close = closest(line, COMMANDS)
            hint = f"did you mean {close}?" if close else "/help shows the commands"
            messages.warn(f"there is no command {line} - {hint}")
        elif line:
            said = line.replace("\\n", "\n")
            answers = chatbot.respond(said, candidates, top=top or 1, threshold=threshold)
            reply = answers[0].text
            history.append((PARTNER, said))
            if log is not None:
                log.add(history, reply)
            history.append((SELF, reply))
            model = f"{coloured('model', 36)}> " if is_terminal else ""
            if top is None:
                is_rejected = answers[1:] and answers[0] == (chatbot.agent.reject_class, None)
                guess = f" ({answers[1].text} {answers[1].probability:.4f})" if is_rejected else ""
                print(model + _on_one_line(reply + guess))
            for answer in answers if top else ():
                p = "" if answer.probability is None else f"{answer.probability:.4f}"
                print(f"{model}{p:<6}\t{_on_one_line(answer.text)}")
                model = " " * len("model> ") if is_terminal else ""
            if top is not None and not is_terminal:
                print()
            sys.stdout.flush()


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n")


def _limited(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a pipe, with a limit on their length because a line may be endless.

    RAISES (DataError): If a line is too long.
    """
    from ..errors import DataError
    from ..formats.text_file import MAX_LINE

    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise DataError("stdin", f"has more than {MAX_LINE:,} characters: split it", number)
        yield line


def _lines(is_terminal: bool) -> Iterator[str]:
    if hasattr(sys.stdin, "reconfigure"):  # Replace bytes that are not valid text.
        sys.stdin.reconfigure(errors="replace")
    if not is_terminal:
        if sys.stdin:  # It is None if stdin is closed.
            yield from _limited(sys.stdin)
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() a history and editing
    while True:
        try:
            yield input("you> ")
        except EOFError:
            print()
            return
