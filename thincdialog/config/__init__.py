"""Reading, completing, checking, building and writing of configs."""

from .code import CodeError, CodeLike, PathLike, code_files, distinct_names, load_code
from .given import ConfigLike, Overrides
from .load import (
    CheckedConfig,
    build_block,
    build_sections,
    check_config,
    load_config,
    read_sections,
    resolve_config,
)
from .shipped import code_beside, command_in, find_shipped, shipped_configs, shipped_text
from .write import write_config
