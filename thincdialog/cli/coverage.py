"""Shows what thresholds do: how many texts get a class, and how many of these the right one."""

from typing import Any, List, TextIO

from .output import table


def show_coverage(found: Any, stream: TextIO) -> None:
    """Write a row for each precision that can be had and for the model's threshold, then how many
    texts out of scope the model finds, if there are any.

    found (Dict[str, Dict[str, Any]]): From ``coverage``.
    """
    rows = [["precision", "threshold", "answered", "95 % interval", "right of these", "interval"]]
    for name, row in found.items():
        cells = [*_cells(row["answered"]), *_cells(row["precision"])]
        rows.append([name, f"{row['threshold']:.6g}", *cells])
    stream.write(f"\n{table(rows)}\n")
    own = found["model"]
    auroc = own["AUROC"]
    if auroc == auroc:  # Not nan, which it is if all are in scope.
        rows = [[f"at {own['threshold']:.6g}", "share", "95 % interval"]]
        rows += [[name, *_cells(own[name])] for name in list(own)[3:-1]]
        stream.write(f"\n{table([*rows, ['AUROC', f'{auroc:.4f}', '']])}\n")


def _cells(share: Any) -> List[str]:
    return [f"{share[0]:.4f}", f"{share[1]:.4f} to {share[2]:.4f}"]
