"""Why an agent cannot be set up."""

from typing import Any

from ..errors import ConfigError, Problem


def no_tokenizer() -> ConfigError:
    """Text is to be read, and nothing turns it into tokens."""
    hint = 'add it: @tokenizers = "thincdialog.Words.v1"'
    text = "[agent] reads text, but there is no [tokenizer]"
    return ConfigError([Problem("", text, hint)])


def misfit(error: Exception, data: Any, is_text: bool) -> ConfigError:
    """The model refused what it is to read; layers do so in many ways.

    data (Any): What it was given.
    is_text (bool): Whether that was text.
    """
    reads = f"text (as {type(data).__name__})" if is_text else "features"
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    text = f"[agent.model] cannot be set up to read {reads}: {reason}"
    return ConfigError([Problem("", text, "--verbose shows where")])
