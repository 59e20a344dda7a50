"""Plots of a report, with matplotlib. Bars are medians, whiskers the smallest and largest sample."""

import io
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

from .context import Figure

# Ours in blues, the alternatives in warm colours, local in grey: the same in every plot.
COLOURS = {
    "local": "#6b7280",
    "Sluice direct": "#93c5fd", "Sluice uds": "#3b82f6", "Sluice tcp": "#1e3a8a",
    "Sluice mpi": "#0891b2",
    "local disk": "#9ca3af", "Sluice log": "#2563eb", "far, directly": "#ea580c", "dd": "#78716c",
    "by hand, over a bare socket": "#65a30d",
    "sshfs": "#f59e0b", "rclone mount": "#fcd34d", "scp before/after": "#b45309",
    "xrootdfs": "#dc2626", "XRootD preload": "#fb7185",
}
OTHER = "#a3a3a3"
DPI = 110


def _short(value: float) -> str:
    """Three significant digits: there is no room for more over a bar."""
    return f"{float(f'{value:.3g}'):,.10g}"


def _style(axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0)


def _bars(axes, figure: Figure, groups: list[str], labels: list[str], shown: list[str]) -> None:
    """Draws a cluster of bars for each group; `shown` are the names under the clusters."""
    position, ticks = 0.0, []
    for group in groups:
        here = [label for label in labels if group in figure.bars.get(label, {})]
        start = position
        for label in here:
            samples = figure.bars[label][group]
            middle = statistics.median(samples)
            axes.bar(position, middle, width=0.92, color=COLOURS.get(label, OTHER))
            axes.errorbar(position, middle, yerr=[[middle - min(samples)], [max(samples) - middle]],
                          color="#111827", linewidth=0.8, capsize=2)
            axes.annotate(_short(middle), (position, max(samples)), xytext=(0, 3), textcoords="offset points",
                          ha="center", va="bottom", fontsize=7.5, rotation=90 if len(here) > 5 else 0)
            position += 1
        ticks.append((start + position - 1) / 2)
        position += 1.2
    axes.set_xticks(ticks, shown)
    axes.set_ylabel(figure.axis)
    if figure.log_scale:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * 4)
    else:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.18)
    _style(axes)


def _legend(canvas, labels: list[str]) -> None:
    marks = [plt.Rectangle((0, 0), 1, 1, color=COLOURS.get(label, OTHER)) for label in labels]
    canvas.legend(marks, labels, loc="lower center", ncol=min(len(labels), 5), frameon=False, fontsize=9)


def one_panel(figure: Figure) -> bytes:
    """All groups side by side in one panel: Figures 4 and 5. Returns a PNG."""
    labels = [label for label in [*COLOURS, *figure.bars] if label in figure.bars]
    labels = list(dict.fromkeys(labels))
    canvas, axes = plt.subplots(figsize=(10, 5))
    _bars(axes, figure, figure.groups, labels, figure.groups)
    axes.set_title(f"{figure.title}  ({figure.better} is better)", fontsize=12, loc="left")
    _legend(canvas, labels)
    canvas.subplots_adjust(bottom=0.2, left=0.09, right=0.985, top=0.92)
    return _png(canvas)


def panels(figure: Figure) -> bytes:
    """The panels of a figure, two in a row: Figures 6 and 12. Returns a PNG."""
    labels = list(dict.fromkeys(label for label in [*COLOURS, *figure.bars] if label in figure.bars))
    rows = (len(figure.panels) + 1) // 2
    canvas, grid = plt.subplots(rows, 2, figsize=(12, 4.2 * rows))
    for axes, (title, groups, shown) in zip(grid.flat, figure.panels):
        _bars(axes, figure, groups, labels, shown)
        local = figure.bars.get("local", {}).get(groups[0])
        if local:  # what every bar is to be compared with
            axes.axhline(statistics.median(local), color=COLOURS["local"], linewidth=1, linestyle=(0, (4, 3)), zorder=0.5)
        axes.set_title(title, fontsize=11, loc="left")
    canvas.suptitle(f"{figure.title}  ({figure.better} is better)", fontsize=12, x=0.06, ha="left")
    _legend(canvas, labels)
    canvas.subplots_adjust(bottom=0.24 / rows, left=0.06, right=0.99, top=1 - 0.2 / rows, hspace=0.28, wspace=0.14)
    return _png(canvas)


def _png(canvas) -> bytes:
    out = io.BytesIO()
    canvas.savefig(out, format="png", dpi=DPI, bbox_inches="tight", pad_inches=0.15)
    plt.close(canvas)
    return out.getvalue()
