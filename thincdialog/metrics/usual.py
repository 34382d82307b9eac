"""Which values of a report are standard scores, which a config has added, and which only count."""

import re

# Values that count the input, and do not measure the replies.
ABOUT_READING = re.compile(r"examples|tokens|padding_fraction|truncated_\w+")
# Scores that agents and the default metrics report, and parts of other metrics.
USUAL = re.compile(
    r"hits@(1|5|10)|mrr|accuracy|exact_match|((micro|macro|weighted)_)?f1|"
    r"(rouge_l_|micro_|macro_)?(precision|recall)|loss|perplexity"
)


def is_about_reading(name: str) -> bool:
    """Return whether a value of a report counts the input, and is not a score of the replies.

    name (str): Name in a report, for instance "tokens" or "dialogue/truncated_labels".
    """
    return ABOUT_READING.fullmatch(name.rpartition("/")[2]) is not None


def is_added(name: str) -> bool:
    """Return whether a report has a score only because a config names its metric. Tables always
    show such scores, even if there is little space.

    name (str): Name in a report, without a task's name.
    """
    return not (ABOUT_READING.fullmatch(name) or USUAL.fullmatch(name))
