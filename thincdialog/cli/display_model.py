"""``display-model``: show a saved model's replies to examples of its task."""

import argparse

from .arguments import GPU, JSONL, MAX_LEN, MODEL, argument, common, positive, split
from .exchanges import show_exchanges
from .output import messages, print_json

EXAMPLES = [
    "display-model output/quickstart/model-best",
    "dm output/ranker/model-best --split dev -n 3 --paths.dev dev.jsonl",
    "dm output/ranker/model-best -n 100 --jsonl > replies.jsonl",
]

ARGUMENTS = [
    MODEL,
    argument("-n --num-conversations N", "conversations to show", positive, 5),
    split("test"),
    MAX_LEN,
    JSONL,
    GPU,
]


def run(arguments: argparse.Namespace) -> None:
    """Show conversations with the model's replies."""
    from ..evaluation.predictions import is_right
    from ..inspection.display import display_model

    options = {"n_conversations": arguments.num_conversations, **common(arguments, "split")}
    conversations = display_model(arguments.model, **options)
    if arguments.jsonl:
        for number, exchanges in enumerate(conversations):
            for message, reply in exchanges:
                row = {"conversation": number, "message": message, "reply": reply}
                print_json(row, indent=None)
    else:
        show_exchanges(conversations, arguments.max_len)
    pairs = [(reply, message.all_labels) for talk in conversations for message, reply in talk]
    are_right = [is_right(reply, labels) for reply, labels in pairs if labels]
    if not are_right:
        messages.info("No example has a label: nothing is compared")
        return
    equal = f"{sum(are_right)} of {len(are_right)} replies equal a label (=)"
    messages.info(f"{equal}; where one differs (x), the label is shown below it")
