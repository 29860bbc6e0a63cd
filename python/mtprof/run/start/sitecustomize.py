# SPDX-License-Identifier: Apache-2.0
"""What the interpreter imports at its start under `mtprof run`, see mtprof.run, and `python -m mindtorch_v2`. It
leaves nothing behind: neither its variables nor its folder, and the program's own sitecustomize is imported after it.
Only where mindtorch_v2 is in torch's place the variables stay, for Python processes that the program starts."""
import json
import os
import sys


def _arm():
    folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    settings = json.loads(os.environ.pop("MTPROF_RUN", "{}"))
    as_torch, whole = settings.get("as_torch"), os.environ.get("PYTHONPATH", "")
    _, _, rest = whole.partition(os.pathsep)
    if as_torch:
        os.environ["MTPROF_RUN"] = json.dumps({"as_torch": True})
    elif rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    before = [entry for entry in sys.path if entry != folder]
    sys.path[:] = [package, *before]  # the package that mtprof run is of, wherever the program looks for modules
    try:
        if as_torch:
            import mindtorch_v2
            mindtorch_v2.install_as_torch()
        if "record" in settings:
            from mtprof.run import recording
            recording.arm(settings["record"])
    finally:
        sys.path[:] = before
        for entry in {folder, package}.difference(before):
            sys.path_importer_cache.pop(entry, None)
    del sys.modules["sitecustomize"]


_arm()
__import__("sitecustomize")  # the next one on the path; where there is none, the interpreter expects an ImportError
