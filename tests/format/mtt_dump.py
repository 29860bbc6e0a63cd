"""mtt_dump.py FILE: the canonical text dump of a trace, for comparison with other readers.

One line per record, streams in order of (kind, slot), records in order of (sequence, position):
    r STREAM SLOT OFFSET KIND AUX ARG EPOCH THREAD TICKS KEY [WORD...]
(kind as two hex digits, body words in hex, the rest decimal), then one line "problem OFFSET" for each offset with a
problem, ascending. A refused file gives its problem line alone and exit status 1.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mtt_reader


def dump(source, write):
    """Write the dump of a trace; return the exit status."""
    try:
        trace = mtt_reader.Trace(source)
    except mtt_reader.TraceError as error:
        write(f"problem {error.offset}\n")
        return 1
    for stream in trace.streams():
        for r in trace.records(stream):
            words = "".join(f" {w:x}" for w in r.words)
            write(f"r {stream.kind} {stream.slot} {r.offset} {r.kind:02x} {r.aux} {r.arg} {r.epoch} {r.thread} "
                  f"{r.ticks} {r.key}{words}\n")
    for offset in sorted({offset for offset, _ in trace.problems}):
        write(f"problem {offset}\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: mtt_dump.py FILE")
    sys.exit(dump(sys.argv[1], sys.stdout.write))
