"""``display-model``: show a saved model's replies to examples of its task."""

import argparse
import sys
from typing import Dict

from .arguments import add_code, add_gpu, add_model, add_split, count, with_gpu
from .exchanges import show_exchanges
from .json_output import add_jsonl, print_json
from .output import Messages

EXAMPLES = [
    "display-model output/quickstart/model-best",
    "dm output/ranker/model-best --split dev -n 3 --paths.dev dev.jsonl",
    "dm output/ranker/model-best -n 100 --jsonl > replies.jsonl",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_model(parser)
    parser.add_argument("-n", "--num-conversations", metavar="N", type=count, default=5,
                        help="conversations to show, 5 if not given")  # fmt: skip
    add_split(parser)
    parser.add_argument("--max-len", metavar="N", type=count, default=300,
                        help="letters of a text to show; 0 for all")  # fmt: skip
    add_jsonl(parser)
    add_code(parser)
    add_gpu(parser)


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Show conversations with the model's replies."""
    from ..inspection.display import display_model

    conversations = display_model(
        arguments.model,
        split=arguments.split,
        n_conversations=arguments.num_conversations,
        overrides=with_gpu(overrides, arguments.gpu_id),
        code=arguments.code,
    )
    if arguments.jsonl:
        for number, exchanges in enumerate(conversations):
            for message, reply in exchanges:
                row = {"conversation": number, "message": message, "reply": reply}
                print_json(row, indent=None)
    else:
        show_exchanges(conversations, arguments.max_len)
    n_right = n_labelled = 0
    for message, reply in (exchange for exchanges in conversations for exchange in exchanges):
        n_labelled += bool(message.all_labels)
        n_right += reply.get("text") in message.all_labels
    text = f"{n_right} of {n_labelled} replies equal a label (=); where one differs (x), "
    Messages(sys.stderr).info(text + "the label is shown below it")
    return 0
