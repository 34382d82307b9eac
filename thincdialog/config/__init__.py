"""Configs: read, complete, check, build, write."""

from .code import CodeError, load_code
from .given import ConfigLike, Overrides
from .load import (
    CheckedConfig,
    build_block,
    check_config,
    load_config,
    read_sections,
    resolve_config,
)
from .shipped import find_shipped, shipped_configs
from .write import write_config

__all__ = [
    "CheckedConfig", "CodeError", "ConfigLike", "Overrides", "build_block", "check_config",
    "find_shipped", "load_code", "load_config", "read_sections", "resolve_config",
    "shipped_configs", "write_config",
]  # fmt: skip
