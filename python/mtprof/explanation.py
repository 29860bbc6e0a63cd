# SPDX-License-Identifier: Apache-2.0
"""Explanations: why a program is slow (docs/explain.md). The library finds it; here it becomes objects."""
from __future__ import annotations

TYPE_CHECKING = False  # typing's, which takes longer to import than this module
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from ._mtprof import Model


class Finding:
    """One finding: `id` ("data-wait" …), `title`, `share` of the wall time, `gain_s` (seconds that it costs at most),
    `confidence` ("high" or "medium"), `evidence` (a list of dicts, each with a `text`) and `advice`."""

    id: str
    title: str
    share: float
    gain_s: float
    confidence: str
    evidence: list[dict[str, Any]]
    advice: str

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self):
        return f"<Finding {self.id}: {100 * self.share:.1f} %, {self.gain_s:.6f} s>"


class Explanation(str):
    """Why a program is slow. It is the text itself, so print() shows it.

    findings: a list of Finding, the most important first. clean: whether there is none. parts: seconds of the wall
    time by what they went to; they add up to trace["wall_s"]. trace: what is true of the trace as a whole.
    """

    findings: list[Finding]
    clean: bool
    parts: dict[str, float]
    trace: dict[str, Any]
    _texts: tuple[str, str, str, str]

    @classmethod
    def of_model(cls, model: Model, step: int | None = None) -> Explanation:
        """Explains a model, or one of its steps."""
        import json  # not where nobody asks: it takes longer than this module
        texts = model.explain(step)
        made = cls(texts[0])
        values = json.loads(texts[3])
        made.findings = [Finding(one) for one in values["findings"]]
        made.clean, made.parts, made.trace = values["clean"], values["parts"], values["trace"]
        made._texts = texts
        return made

    @classmethod
    def of_nothing(cls, reason: str) -> Explanation:
        """Where there are no events: why."""
        import json
        made = cls(reason)
        made.findings, made.clean, made.parts, made.trace = [], True, {}, {"events": 0}
        text = json.dumps({"schema": 1, "trace": made.trace, "parts": {}, "findings": [], "clean": True,
                           "reason": reason})
        made._texts = (reason, reason, text, text)
        return made

    def to_json(self, limit: bool = True) -> str:
        """Schema 1 of docs/explain.md as text; limit: at most 4 kB, what is left out is counted."""
        return self._texts[2 if limit else 3]

    def to_markdown(self) -> str:
        """The text as Markdown."""
        return self._texts[1]

    def _repr_markdown_(self) -> str:
        return self._texts[1]

    def __repr__(self):
        return f"<Explanation: {', '.join(one.id for one in self.findings) or 'clean'}>"


def explain(path: str | bytes | PathLike[str] | PathLike[bytes], step: int | None = None) -> Explanation:
    """Why the program of a trace was slow: a .mtt file, or Chrome JSON (also gzipped) of any tool.

    step: only this one. The same as load(path).explain(step), and as the command `mtprof explain`.
    """
    from .results import load
    return load(path).explain(step)
