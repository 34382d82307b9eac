"""Show the effect of thresholds: the fraction of texts that are answered, and their precision."""

from typing import Any, List, TextIO

from .output import table


def show_coverage(found: Any, stream: TextIO) -> None:
    """Print a row for each precision that can be reached and for the model's threshold; then, if
    there are texts out of scope, the fraction of these that the model finds.

    found (Dict[str, Dict[str, Any]]): Result of ``coverage``.
    stream (TextIO): Stream to print to.
    """
    rows = [["precision", "threshold", "answered", "95 % interval", "right of these", "interval"]]
    for name, row in found.items():
        cells = [*_cells(row["answered"]), *_cells(row["precision"])]
        rows.append([name, f"{row['threshold']:.6g}", *cells])
    stream.write(f"\n{table(rows)}\n")
    own = found["model"]
    auroc = own["AUROC"]
    if auroc == auroc:  # The AUROC is nan if all texts are in scope.
        rows = [[f"at {own['threshold']:.6g}", "share", "95 % interval"]]
        rows += [[name, *_cells(own[name])] for name in list(own)[3:-1]]
        stream.write(f"\n{table([*rows, ['AUROC', f'{auroc:.4f}', '']])}\n")


def _cells(share: Any) -> List[str]:
    return [f"{share[0]:.4f}", f"{share[1]:.4f} to {share[2]:.4f}"]
