"""Which scores are measured anyway, and which a config has added."""

import re

# Counts of the input, not of how well it was answered.
ABOUT_READING = re.compile(r"examples|tokens|padding_fraction|truncated_\w+")
# What agents and the default metrics report, and parts of other metrics.
USUAL = re.compile(
    r"hits@(1|5|10)|mrr|accuracy|exact_match|((micro|macro|weighted)_)?f1|"
    r"(rouge_l_|micro_|macro_)?(precision|recall)|loss|perplexity"
)


def is_about_reading(name: str) -> bool:
    """Whether a value of a report is no score of the replies.

    name (str): In a report, for instance "tokens" or "dialogue/truncated_labels".
    """
    return ABOUT_READING.fullmatch(name.rpartition("/")[2]) is not None


def is_added(name: str) -> bool:
    """Whether a score is there because a config names its metric: tables show it, whatever
    room there is for others.

    name (str): In a report, without a task's.
    """
    return not (ABOUT_READING.fullmatch(name) or USUAL.fullmatch(name))
