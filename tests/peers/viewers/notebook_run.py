#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook in a real kernel and writes what it shows as a page: notebook_run.py PYTHONPATH PAGE

The cells end in objects of ours; the kernel asks them for their HTML, as every notebook does.
"""
import html
import os
import sys

import nbclient
import nbformat

CELLS = ("""
import mtprof
NAMES = ("forward", "</td></table><script>window.stolen = 1</script>", "<img src=x onerror='window.stolen = 1'>",
         "</iframe><script>parent.stolen = 1</script>", "backward")
def program(extra):
    prof = mtprof.profile(profile_memory=True)
    prof.start()
    for step in range(8):
        with mtprof.record_function("next_batch"):
            sum(range(100000))
        for name in NAMES + extra:
            with mtprof.record_function(name):
                sum(range(3000))
        prof.step()
    prof.stop()
    return prof
before, prof = program(("old",)), program(("fresh",))
prof
""", "prof.key_averages()", "prof.events()", "prof.explain()", "prof.report(baseline=before)")


def main(path, page):
    os.environ["PYTHONPATH"] = path
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = []
    for cell in notebook.cells:
        results = [output for output in cell.outputs if output.output_type == "execute_result"]
        if not results or "text/html" not in results[0].data:
            print(f"FAILED a cell has no HTML: {cell.source.splitlines()[-1]}: {cell.outputs}")
            return 1
        shown.append(f"<pre>{html.escape(cell.source.strip().splitlines()[-1])}</pre>"
                     f"<div class=\"output\">{results[0].data['text/html']}</div>")
    with open(page, "w", encoding="utf-8") as file:
        file.write("<!DOCTYPE html><html><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">"
                   "<title>a notebook</title></head><body style=\"font:14px sans-serif;margin:12px\">"
                   + "\n".join(shown) + "</body></html>")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
