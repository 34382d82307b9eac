"""House rules that readers rely on: each test goes through all files and lists every violation."""

import ast
from functools import lru_cache
from pathlib import Path
from typing import Dict

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, TESTS = ROOT / "thincdialog", ROOT / "tests"
# Tests of properties that no single file has.
OF_A_WHOLE_ROOM = """
atheris docs golden house imports limits real_scores startup agents/baselines agents/batch_lengths
agents/history batchers/waiting cli/commands cli/mistakes cli/runs config/damaged_configs
config/scalars strangers evaluation/user_metric
formats/damaged_files loggers/trackers metrics/generation_metrics
models/encoders ops/fast_ops ops/fast_ops_lstm ops/kept_memory runs/determinism
runs/kills teachers/real_data training/devices training/device_counts
training/tasks cli/printed_commands stand_in words benchmarks/bench_gpu
""".split()


@lru_cache(maxsize=None)
def trees() -> Dict[Path, ast.Module]:
    """Parse every file of the package."""
    return {file: ast.parse(file.read_bytes()) for file in sorted(PACKAGE.rglob("*.py"))}


@pytest.mark.slow
def test_house_public_names_have_docstrings():
    without = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file, tree in trees().items()
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        # The docstring of a layer's builder describes these two, too.
        and node.name not in ("forward", "init")
        and not ast.get_docstring(node)
    ]
    assert not without, "\n".join(without)


@pytest.mark.slow
def test_house_registering_files_have_real_annotations():
    # Config checks read annotations. If they were strings, one bad name would disable all checks.
    both = ("@registry.", "from __future__ import annotations")
    wrong = [str(file) for file in trees() if all(map(file.read_text("utf8").count, both))]
    assert not wrong, "\n".join(wrong)


def test_house_tests_mirror_the_package():
    """A test is named after a file or folder in its part of the package, after one of a family of
    files (``kernels_adam``), or after the family (``baselines``, ``memory`` of ``memory_hops``)."""
    wrong = []
    for test in sorted(TESTS.rglob("test_*.py")):
        room = test.relative_to(TESTS).parts[0] if test.parent != TESTS else ""
        files = (PACKAGE / room).rglob("*") if room else PACKAGE.iterdir()
        known = {path.stem for path in files if path.suffix in ("", ".py")} | {room} - {""}
        name = test.stem.removeprefix("test_")
        is_known = any(f"{name}_".startswith((f"{each}_", f"{each}s_")) for each in known)
        is_family = any(each.startswith(f"{name}_") for each in known)
        if not is_known and not is_family and f"{room}/{name}".strip("/") not in OF_A_WHOLE_ROOM:
            wrong.append(str(test.relative_to(ROOT)))
    assert not wrong, "\n".join(wrong)


def test_house_makefile_is_short_and_lists_its_targets():
    lines = (ROOT / "Makefile").read_text(encoding="utf8").splitlines()
    assert len(lines) <= 60
    phony = next(line for line in lines if line.startswith(".PHONY")).split()[1:]
    listed = [line.split(":")[0] for line in lines if "##" in line and not line.startswith("\t")]
    assert phony == listed
