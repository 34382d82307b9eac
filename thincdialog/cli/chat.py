"""``chat``: talk to a saved model, line by line; works in pipes, too."""

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .arguments import add_code, add_gpu, add_model, with_gpu
from .output import Messages, coloured

EXAMPLES = [
    "chat output/quickstart/model-best",
    "chat output/ranker/model-best --candidates replies.txt",
    "chat output/ranker/model-best < questions.txt > replies.txt",
]

# What ends a conversation and what ends the program, beside /reset and /quit: ParlAI's words.
DONE, EXIT = "[DONE]", "[EXIT]"
COMMANDS = {
    "/reset": "start a new conversation (also [DONE])",
    "/history": "show the conversation so far",
    "/quit": "end (also [EXIT], or end of input)",
    "/help": "show these commands",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_model(parser)
    parser.add_argument(
        "--candidates", metavar="FILE", help="replies to choose from, one on a line"
    )
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Load the model and talk until the input ends."""
    from ..api import load

    candidates = _read_candidates(arguments.candidates) if arguments.candidates else None
    chatbot = load(
        arguments.model,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
    )
    is_terminal = all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if is_terminal:
        Messages(sys.stderr).info(
            "/help shows the commands, /quit ends. \\n stands for a new line."
        )
    talk(chatbot, _lines(is_terminal), is_terminal, candidates)
    return 0


def talk(
    chatbot: Any,
    lines: Iterator[str],
    is_terminal: bool = False,
    candidates: Optional[List[str]] = None,
) -> None:
    """Answer each line on stdout; lines that are commands do what they say."""
    messages = Messages(sys.stderr)
    history: List[Tuple[str, str]] = []
    for line in lines:
        line = line.strip()
        if line in ("/quit", EXIT):
            break
        if line in ("/reset", DONE):
            chatbot.reset()
            history.clear()
            messages.info("New conversation")
        elif line == "/history":
            for speaker, text in history:
                print(f"{speaker:<5}  {text}")
        elif line == "/help":
            for name, about in COMMANDS.items():
                messages.info(f"{name:<9} {about}")
        elif line.startswith("/") and " " not in line:
            close = difflib.get_close_matches(line, COMMANDS, 1)
            hint = f"did you mean {close[0]}?" if close else "/help shows the commands"
            messages.warn(f"there is no command {line} - {hint}")
        elif line:
            reply = chatbot.respond(line.replace("\\n", "\n"), candidates)
            history += [("you", line), ("model", reply)]
            shown = reply.replace("\n", "\\n")
            print(f"{coloured('model', 36, sys.stdout)}> {shown}" if is_terminal else shown)
            sys.stdout.flush()


def _lines(is_terminal: bool) -> Iterator[str]:
    if not is_terminal:
        yield from sys.stdin or ()  # None if it is closed.
        return
    try:
        import readline  # noqa: F401 - gives input() a history and editing
    except ImportError:
        pass
    while True:
        try:
            yield input("you> ")
        except EOFError:
            print()
            return


def _read_candidates(path: str) -> List[str]:
    from ..errors import DataError

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(path, "there is no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(path, f"byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if not found:
        raise DataError(path, "holds no candidates")
    return found
