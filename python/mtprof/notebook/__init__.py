# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: any that asks objects for _repr_html_() (Jupyter, VS Code, Colab, marimo).

The pieces are made in C, without script, and names of the trace are escaped there. The report has a script; it runs
in a frame of its own that cannot reach the notebook.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

ROWS = 20  # that a table in a notebook has
_HTML = 5  # MTPROF_TABLE_HTML


def list_html(items: Any) -> str:
    """A list of events or rows: rows by time, events in their order."""
    rows = items._is_rows()
    sort_by = None
    if rows:
        on_device = any(getattr(row, "self_device_time_total", 0) for row in items)
        sort_by = "self_device_time_total" if on_device else "self_cpu_time_total"
    more = len(items) - ROWS
    what = "row" if rows else "event"
    if not items:
        return f"<div>No {what}s.</div>"
    table = items._table(sort_by, {"row_limit": ROWS, "top_level_only": False, "format": _HTML})
    return table + (f"<div>… {more:,} more {what}{'' if more == 1 else 's'}; table() prints them</div>\n" if more > 0 else "")


def results_html(results: Any) -> str:
    """Where the time went, and the rows that took it."""
    return results.explain()._repr_html_() + list_html(results.key_averages())


class Report:
    """The page of export_report(), for a notebook to show; save() writes it, str() is its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        from .._new_file import new_file
        with new_file(os.fspath(path), "w", encoding="utf-8", newline="") as file:
            file.write(self._text)

    def _repr_html_(self) -> str:
        import html
        return (f'<iframe title="mtprof report" sandbox="allow-scripts" srcdoc="{html.escape(self._text)}" '
                'style="width:100%;height:720px;border:1px solid rgba(128,128,128,.4)"></iframe>')

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Report of {len(self._text) / 1024:.0f} KiB; a notebook shows it, save(path) writes it>"
