# SPDX-License-Identifier: Apache-2.0
"""What `mtprof run` tells at the end of a program."""
import shlex


def summary(trace, *, shown, size, rows, calls, recorded_here, notes):
    """The lines: what there is, how whole it is, the first rows of the table, how to see more.

    trace: None where it is too large to be read now. notes: lines about the recording. recorded_here: the file is
    the recording itself, not an export.
    """
    lines = [f"{shown}, {_size(size)}", *notes]
    if trace is None:
        lines.append(f"No table here: reading {_size(size)} takes a while.")
    elif trace.health().events:
        lines.append(str(trace.health()))
        if rows:
            averages = trace.key_averages(include_python_functions=calls or None)
            table = averages.table(sort_by="self_cpu_time_total", row_limit=rows, width=80)
            lines += ["", table.strip("\n"), ""]
    name = shlex.quote(shown)
    if shown.endswith((".mtt", ".json", ".json.gz")):
        lines.append(f"  mtprof explain {name}")
        lines.append(f"  mtprof report {'--functions ' if calls else ''}{name}")
    if recorded_here:
        lines.append(f"  mtprof export {name} -o {shlex.quote(shown.removesuffix('.mtt') + '.json.gz')}")
    return lines


def _size(size):
    unit = max(0, min(3, (int(size).bit_length() - 1) // 10))
    return f"{size / (1 << 10 * unit):.4g} {('bytes', 'KiB', 'MiB', 'GiB')[unit]}"
