"""Shows what thresholds do: how many texts get a class, and how many of these the right one."""

from typing import Any, Dict, List, TextIO

from .output import table


def show_coverage(guesses: Any, threshold: float, stream: TextIO) -> None:
    """Write a row for each wanted precision and for the model's own threshold, then how well texts
    out of scope are found at that.

    guesses (Guesses): Of a split.
    threshold (float): The model's.
    """
    from ..evaluation.coverage import auroc, coverage, covered, of_scope

    rows = [["precision", "threshold", "answered", "95 % interval", "right of these", "interval"]]
    found = {f"{wanted:.0%}": row for wanted, row in coverage(guesses).items()}
    for name, row in {**found, "(the model's)": covered(guesses, threshold)}.items():
        cells = [*_cells(row.answered), *_cells(row.precision)] if row else ["-"] * 4
        rows.append([name, f"{row.threshold:.4f}" if row else "never", *cells])
    stream.write(f"\n{table(rows)}\n")
    if not guesses.is_inside.all():
        rows = [[f"at {threshold:.4f}", "share", "95 % interval"]]
        rows += [[name, *_cells(share)] for name, share in of_scope(guesses, threshold).items()]
        stream.write(f"\n{table([*rows, ['AUROC', f'{auroc(guesses):.4f}', '']])}\n")


def _cells(share: Any) -> List[str]:
    return [f"{share.value:.4f}", f"{share.low:.4f} to {share.high:.4f}"]


def coverage_as_json(guesses: Any, threshold: float) -> Dict[str, Any]:
    """The same for JSON; a share is [value, low, high]."""
    from ..evaluation.coverage import auroc, coverage, covered, of_scope

    own = {**covered(guesses, threshold)._asdict(), **of_scope(guesses, threshold)}
    found = {str(wanted): row and row._asdict() for wanted, row in coverage(guesses).items()}
    return {"coverage": {**found, "model": own, "AUROC": auroc(guesses)}}
