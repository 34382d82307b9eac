"""The files in the examples of help texts, and how users get them."""

import shlex
from typing import Dict, Iterable, List, Sequence

# File to the command that creates it; later commands may use files of earlier ones.
MADE = {
    "quickstart.cfg": "init config quickstart.cfg",
    "ranker.cfg": "init config ranker.cfg",
    "intent.cfg": "init config intent.cfg",
    "output/quickstart": "train quickstart.cfg --output output/quickstart",
    "output/small": "train quickstart.cfg --output output/small --agent.model.encoder.width 32",
    "output/ranker": "train ranker.cfg --output output/ranker "
    "--paths.train train.jsonl --paths.dev dev.jsonl --paths.test test.jsonl",
    "output/intent": "train intent.cfg --paths.train intents.csv --paths.test intents.csv",
    "best.jsonl": "evaluate output/quickstart/model-best --predictions best.jsonl",
    "small.jsonl": "evaluate output/small/model-best --predictions small.jsonl",
}
_TALK = 'your conversations, one per line: {"turns": [{"speaker": "A", "text": "hi"}, ...]}'
YOURS = {
    **dict.fromkeys(("train.jsonl", "dev.jsonl", "test.jsonl"), _TALK),
    "intents.csv": 'your labelled texts, with the columns "text" and "label"',
    "tickets.csv": 'your labelled texts, with the columns "body" and "label"',
    "chats.json": 'a ShareGPT export: [{"conversations": [{"from": "human", "value": "hi"}, ...',
    "lines.txt": "your texts, one per line",
    "minilm": "hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir minilm",
}
_WRITE = ("-o", "--output", ">", ">>", "--json", "--png", "--svg", "--predictions")


def needed(examples: Iterable[str]) -> List[str]:
    """Return the files that examples need and do not write themselves, with the files that these
    are made from, in the order in which they can be made.

    examples (Iterable[str]): Command lines without the program's name.
    """
    names: List[str] = []
    lines = list(examples)
    for line in lines:
        words = shlex.split(line)
        for before, word in zip(["", *words], words):
            name = "/".join(word.split("/")[:2]) if word.startswith("output/") else word
            if before in _WRITE or name in names or name not in {**MADE, **YOURS}:
                continue
            names.append(name)
            lines += [MADE[name]] if name in MADE else []
    return [name for name in (*YOURS, *MADE) if name in names]


def where_from(examples: Sequence[str]) -> List[str]:
    """Return lines of help about the sources of the files in some examples."""
    names = needed(examples)
    yours: Dict[str, List[str]] = {}
    for name in names:
        if name in YOURS:
            yours.setdefault(YOURS[name], []).append(name)
    lines = [f"  {', '.join(files)}: {about}" for about, files in yours.items()]
    made = [MADE[name] for name in names if name in MADE]
    lines += [f"  python -m thincdialog {line}" for line in made if line not in examples]
    return ["", "files used in these examples:", *lines] if lines else []
