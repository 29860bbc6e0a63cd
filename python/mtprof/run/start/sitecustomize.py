# SPDX-License-Identifier: Apache-2.0
"""What the interpreter imports at its start under `mtprof run`, see mtprof.run. It leaves nothing behind: neither
its variables nor its folder, and the program's own sitecustomize is imported after it."""
import os
import sys


def _arm():
    folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    settings = os.environ.pop("MTPROF_RUN", None)
    _, _, rest = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    before = [entry for entry in sys.path if entry != folder]
    sys.path[:] = [package, *before]  # the package that mtprof run is of, wherever the program looks for modules
    try:
        if settings is not None:
            from mtprof.run import recording
            recording.arm(settings)
    finally:
        sys.path[:] = before
        for entry in {folder, package}.difference(before):
            sys.path_importer_cache.pop(entry, None)
    del sys.modules["sitecustomize"]


_arm()
__import__("sitecustomize")  # the next one on the path; where there is none, the interpreter expects an ImportError
