"""The common style of figures."""

from __future__ import annotations

from typing import Any

BLUE, GREEN, GREY = "#0072B2", "#009E73", "#999999"

LOOK: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#222222",
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "coevo",  # the same figure has the same bytes
}
"""For `matplotlib.rc_context`."""
