"""The report of a full run: one HTML file that needs nothing beside itself."""

import base64
import html
import os
import statistics

from . import plots
from .context import Bench, Figure
from .report import number, rows

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #111827; margin: 2rem auto; max-width: 1240px; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.4rem }
p.note { color: #4b5563; margin-top: 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .22rem .7rem; text-align: right; border-bottom: 1px solid #e5e7eb; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { background: #f3f4f6 }
td.ok { color: #047857; font-weight: 600 } td.miss { color: #b91c1c; font-weight: 600 }
img { max-width: 100%; height: auto } .beside { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start }
.scroll { overflow-x: auto } li { font-size: 13px }
"""


def cell(text: str, kind: str = "td", mark: str = "") -> str:
    return f"<{kind}{f' class={mark}' if mark else ''}>{html.escape(text)}</{kind}>"


def table(head: list[str], body: list[list[str]], marks: tuple[str, ...] = ()) -> str:
    """An HTML table; a cell whose text is one of `marks` gets that class."""
    lines = ["<tr>" + "".join(cell(text, "th") for text in head) + "</tr>"]
    lines += ["<tr>" + "".join(cell(text, mark=text if text in marks else "") for text in row) + "</tr>" for row in body]
    return "<div class=scroll><table>" + "\n".join(lines) + "</table></div>"


def figure_table(figure: Figure, groups: list[str], shown: list[str]) -> str:
    """Medians of a figure, and beside each the ratio to local where there is one."""
    local = figure.bars.get("local", {})
    body = []
    for label, by_group in figure.bars.items():
        row = [label]
        for group in groups:
            samples = by_group.get(group)
            if not samples:
                row.append("–")
                continue
            middle = statistics.median(samples)
            # For Gmsh the local run is one, L2L, and what every placement is compared with.
            base = local.get(group) or local.get(group.rsplit(" ", 1)[0] + " L2L")
            ratio = f"  ({middle / statistics.median(base):.2f} ×)" if base and label != "local" else ""
            row.append(number(middle) + ratio)
        body.append(row)
    return table([f"{figure.axis} (× local)", *shown], body)


def image(png: bytes, name: str) -> str:
    data = base64.b64encode(png).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'


def figure_html(key: str, figure: Figure, folder: str) -> str:
    """A figure with its table; the PNG is kept beside the report, too."""
    heading = f"<h2>{html.escape(figure.title)}</h2><p class=note>{html.escape(figure.caption)}</p>"
    if figure.panels:
        png = plots.panels(figure)
        tables = "".join(f"<h3>{html.escape(title)}</h3>" + figure_table(figure, groups, shown)
                         for title, groups, shown in figure.panels)
    else:
        png = plots.one_panel(figure)
        tables = figure_table(figure, figure.groups, figure.groups)
    with open(os.path.join(folder, f"figure{key}.png"), "wb") as file:
        file.write(png)
    return f"{heading}<div class=beside>{image(png, figure.title)}<div>{tables}</div></div>"


def write(path: str, bench: Bench, result: dict, started: str, revision: str, folder: str) -> None:
    """Writes the report of a run."""
    machine = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result["machine"].items())
    skipped = "".join(f"<li><b>{html.escape(entry['name'])}</b>: {html.escape(entry['why'])}</li>"
                      for entry in result["skipped"])
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>Sluice: bench {html.escape(result['area'])}</title><style>{STYLE}</style>",
        f"<h1>Sluice: bench {html.escape(result['area'])}</h1>",
        f"<p class=note>{html.escape(started)}, revision {html.escape(revision or 'unknown')}, {html.escape(machine)}. "
        "Everything was measured in one run, alternately, on the same data; figures are medians, ratios are medians "
        "of pairs.</p>",
        *(figure_html(key, figure, folder) for key, figure in sorted(bench.figures.items())),
        "<h2>All metrics</h2>",
        table(["metric", "value", "unit", "goal", "", "spread (samples)"], [list(row) for row in rows(bench.board)],
              ("ok", "miss")),
        f"<h2>Skipped</h2><ul>{skipped or '<li>nothing</li>'}</ul></html>",
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts))
