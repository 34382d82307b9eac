"""Generating the quickstart's dialogues, compared with reading as many from a file.

3,000 dialogues of thincdialog.CoffeeOrder.v1, and the same dialogues as a file of conversations:
CPU microseconds per turn, median of 5 runs each, one thread. Candidates are generated, but
conversations have none, so the comparison favours the file.

    python tests/benchmarks/bench_coffee.py
"""

import json
import tempfile
from pathlib import Path

from measuring import cpu_seconds, in_turns, medians, sized

from thincdialog.formats.conversations import read_conversations
from thincdialog.teachers.coffee_order import coffee_orders

N_REPEATS, N_DIALOGUES = sized((5, 3000), (1, 50))


def write(path, dialogues):
    with open(path, "w", encoding="utf8") as file:
        for dialogue in dialogues:
            said = [(who, m) for m in dialogue for who, m in zip("AB", (m["text"], *m["labels"]))]
            turns = [{"speaker": speaker, "text": text} for speaker, text in said]
            file.write(json.dumps({"turns": turns}) + "\n")


def main():
    dialogues = list(coffee_orders(N_DIALOGUES, "0/train"))
    n_turns = sum(map(len, dialogues))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coffee.jsonl"
        write(path, dialogues)
        work = {
            "generate": lambda: list(coffee_orders(N_DIALOGUES, "0/train")),
            "read": lambda: list(read_conversations(path)),
        }
        seconds = medians(in_turns(work, lambda name: cpu_seconds(work[name])[0], N_REPEATS))
    for name, each in seconds.items():
        print(f"{name:8}  {1e6 * each / n_turns:5.1f} CPU microseconds a turn ({n_turns:,} turns)")
    print(f"generating takes {seconds['generate'] / seconds['read']:.2f} times as long as reading")


if __name__ == "__main__":
    main()
