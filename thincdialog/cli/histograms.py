"""Draw histograms of several splits side by side, with text characters."""

from typing import List, Mapping

PARTS = " ▏▎▍▌▋▊▉█"
_WIDTH = 14


def bar(share: float, width: int, blocks: bool) -> str:
    """Draw a bar; a fraction above 0 is always visible.

    share (float): Length of the bar as a fraction of the width, 0.0 to 1.0.
    width (int): Maximum length, in characters.
    blocks (bool): Whether to draw eighths of characters.
    """
    if not blocks:
        return "#" * (max(1, round(share * width)) if share else 0)
    eighths = max(1, round(share * width * 8)) if share else 0
    return PARTS[8] * (eighths // 8) + PARTS[eighths % 8].strip()


def histogram(title: str, columns: Mapping[str, List], blocks: bool) -> str:
    """Draw a line for each bin, with a bar and a percentage for each column. Three columns take at
    most 80 characters.

    title (str): Name of the measured quantity.
    columns (Mapping[str, List]): Name to bins: first length, last length and count.
    blocks (bool): Whether to draw eighths of characters.
    """
    n_bins = max(map(len, columns.values()))
    longest = max(columns.values(), key=len)
    totals = {name: sum(bin[2] for bin in bins) for name, bins in columns.items()}
    highest = max(bin[2] / totals[name] for name, bins in columns.items() for bin in bins)
    header = f"{title:<15}" + "".join(f" {name:<{_WIDTH + 6}}" for name in columns)
    lines = [header.rstrip()]
    first = min(index for bins in columns.values() for index, bin in enumerate(bins) if bin[2])
    for index in range(first, n_bins):
        low, high, _ = longest[index]
        line = f"{(str(low) if low == high else f'{low}-{high}'):>14} "
        for name, bins in columns.items():
            share = bins[index][2] / totals[name] if index < len(bins) else 0.0
            percent = f"{100 * share:.1f}" if share >= 0.0005 else "<.1" if share else ""
            line += f" {bar(share / highest, _WIDTH, blocks):<{_WIDTH}} {percent:>4} "
        lines.append(line.rstrip())
    return "\n".join(lines)
