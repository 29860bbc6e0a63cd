"""Pairs the begins and ends of a trace into spans (docs/format.md 3.2, 3.5); part of mtt_reader.py's reader."""
from dataclasses import dataclass, field

from mtt_records import ATTACH, BEGIN, BEGIN_X, END, END_X, LOST, M64, NAME, THREAD_STREAM, text_of


DAMAGE = 8  # cause of a LOST record


@dataclass(slots=True)
class Span:
    """A scope. `name` is None where its string is missing; `parent` is a key, 0 for none."""
    name: str
    slot: int
    thread: int
    epoch: int
    start_ticks: int
    end_ticks: int
    key: int
    parent: int
    truncated: bool
    flags: int
    offset: int
    foreign_end: object = field(default=None, repr=False)


def mtt_spans(trace):
    """3.2, 3.5: the scopes of every slot, in the order of their begins. Ends that name no open begin are counted in
    trace.ignored_ends once the generator is exhausted."""
    slots = [s for s in trace.streams() if s.kind == THREAD_STREAM]
    explicit_ends, attached_names = {}, {}
    for stream in slots:
        for record in trace.records(stream):
            if record.kind == END_X:
                explicit_ends.setdefault(record.key, []).append(record)
            elif record.kind == NAME and record.owner is not None and record.owner.kind == ATTACH:
                attached_names[record.owner_key] = text_of(record.words, 1, record.words[0])
    pairing, ignored = _Pairing(trace, explicit_ends, attached_names), 0
    for stream in slots:
        spans, unmatched = pairing.slot(stream)
        ignored += unmatched
        yield from spans
    trace.ignored_ends = ignored + sum(r.offset not in pairing.used for ends in explicit_ends.values() for r in ends)


class _Pairing:
    """Pairs the begins of one slot after another with their ends."""

    def __init__(self, trace, explicit_ends, attached_names):
        self.trace, self.explicit_ends, self.attached_names, self.used = trace, explicit_ends, attached_names, set()

    def slot(self, stream):
        """(spans, ENDs without an open begin) of a slot."""
        spans, self.open, epoch, unmatched, last = [], {}, None, 0, 0
        for r in self.trace.records(stream):
            if r.gap or (r.kind == LOST and r.aux == DAMAGE):
                self._cut_open(last)
            last = max(last, r.ticks)
            if r.epoch != epoch:
                self._close_epoch()
                epoch = r.epoch
            if r.kind in (BEGIN, BEGIN_X):
                self._end_foreign(r.ticks)
                spans.append(self._begin(stream, r))
            elif r.kind in (END, END_X):
                self._end_foreign(r.ticks)
                if r.key in self.open:
                    self._end(self.open[r.key], r)
                else:
                    unmatched += r.kind == END
            elif r.kind == NAME and r.owner is not None and spans and r.owner.offset == spans[-1].offset:
                spans[-1].name = text_of(r.words, 1, r.words[0])
        self._close_epoch()
        return spans, unmatched

    def _begin(self, stream, r):
        if r.key in self.open:  # the key is taken a second time: the first scope never ends by it
            self._truncate(self.open[r.key])
        parent = r.words[2] if r.kind == BEGIN_X else M64
        if parent == M64:
            parent = next((s.key for s in reversed(self.open.values()) if s.thread == r.thread), 0)
        name = self.trace.strings.get(r.arg) if r.arg else self.attached_names.get(r.key)
        span = Span(name, stream.slot, r.thread, r.epoch, r.ticks, 0, r.key, parent, False,
                    r.aux, r.offset)
        # Ends that this slot's own order does not place: from another slot, or supplied by the recorder later on.
        foreign = [e for e in self.explicit_ends.get(r.key, ()) if e.offset not in self.used and (
            e.stream != stream and (e.epoch == r.epoch or e.aux & 1) or e.aux & 1 and e.epoch != r.epoch)]
        span.foreign_end = min(foreign, key=lambda e: (e.ticks, e.offset), default=None)
        self.open[r.key] = span
        return span

    def _end(self, span, record):
        span.end_ticks, span.truncated = record.ticks, record.kind == END_X and bool(record.aux & 1)
        self.used.add(record.offset)
        del self.open[span.key]

    def _end_foreign(self, ticks):
        """End the scopes that other slots ended up to this time."""
        for span in [s for s in self.open.values() if s.foreign_end is not None and s.foreign_end.ticks <= ticks]:
            self._end(span, span.foreign_end)

    def _truncate(self, span):
        span.end_ticks, span.truncated = max(span.start_ticks, self.trace.epoch_end(span.epoch)), True
        del self.open[span.key]

    def _cut_open(self, ticks):
        """3.2: records are missing here. What is open ends with the last one before."""
        self._end_foreign(ticks)
        for span in list(self.open.values()):
            span.end_ticks, span.truncated = max(span.start_ticks, ticks), True
            del self.open[span.key]

    def _close_epoch(self):
        self._end_foreign(M64)
        for span in list(self.open.values()):
            self._truncate(span)
