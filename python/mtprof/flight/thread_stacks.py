# SPDX-License-Identifier: Apache-2.0
"""The Python stacks of all threads, for a program that hangs."""
import sys
import threading

FRAMES_MOST = 100


def _frames(frame):
    lines = []
    while frame is not None and len(lines) < FRAMES_MOST:
        code = frame.f_code
        lines.append('  File "%s", line %s in %s' % (code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    if frame is not None:
        lines.append("  ... only the innermost %d frames are kept" % FRAMES_MOST)
    return lines


def describe():
    """As bytes. Source lines are not read: the file system may be what hangs."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    own = threading.get_ident()
    lines = []
    for ident, frame in sys._current_frames().items():
        if ident == own:
            continue
        thread = threads.get(ident)
        name = '%s "%s"' % (thread.native_id, thread.name) if thread is not None else "0x%x" % ident
        lines.append("Python thread %s (most recent call first)" % name)
        lines.extend(_frames(frame))
        lines.append("")
    return "\n".join(lines).encode("utf-8", "backslashreplace")
