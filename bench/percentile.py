"""Percentiles of a list of figures."""

from collections.abc import Sequence


def percentile(figures: Sequence[float], share: float) -> float:
    """The smallest figure that `share` per cent of the figures do not exceed."""
    ordered = sorted(figures)
    return ordered[max(0, -(-len(ordered) * int(share) // 100) - 1)]
