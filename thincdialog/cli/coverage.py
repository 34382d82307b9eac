"""Show the effect of thresholds: the fraction of texts that are answered, and their precision."""

from math import isnan
from typing import Any, List, TextIO

from .output import table


def show_coverage(found: Any, stream: TextIO) -> None:
    """Print a row for each precision and for the model's threshold; then, if there are texts out of
    scope, the fraction of these that the model finds.

    found (Dict[str, Optional[Dict[str, Any]]]): Result of ``coverage``.
    stream (TextIO): Stream to print to.
    """
    rows = [["precision", "threshold", "answered", "95 % interval", "right of these", "interval"]]
    for name, row in found.items():
        cells = ["not reached", *[""] * 4]
        if row is not None:
            cells = [f"{row['threshold']:.6g}", *_cells(row["answered"]), *_cells(row["precision"])]
        rows.append([name, *cells])
    stream.write(f"\n{table(rows)}\n")
    own = found["model"]
    if not isnan(own["out-of-scope recall"][0]):
        rows = [[f"at {own['threshold']:.6g}", "share", "95 % interval"]]
        measured = (name for name in list(own)[3:-1] if not isnan(own[name][0]))
        rows += [[name, *_cells(own[name])] for name in measured]
        if not isnan(own["AUROC"]):
            rows.append(["AUROC", f"{own['AUROC']:.4f}", ""])
        stream.write(f"\n{table(rows)}\n")


def _cells(share: Any) -> List[str]:
    if isnan(share[0]):  # The share of no texts.
        return ["-", ""]
    return [f"{share[0]:.4f}", f"{share[1]:.4f} to {share[2]:.4f}"]
