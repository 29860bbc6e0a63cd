# SPDX-License-Identifier: Apache-2.0
"""python -m mtprof: the mtprof command, from where Python is."""
import os
import shutil
import sys


def become_command(words):
    """Runs the mtprof command; returns only where there is none: an exit status."""
    beside = os.path.join(os.path.dirname(sys.executable), "mtprof")
    command = beside if os.access(beside, os.X_OK) else shutil.which("mtprof")
    if command is None:
        print("mtprof: the mtprof command is neither beside Python nor on the path; here is only: "
              "python -m mtprof run SCRIPT", file=sys.stderr)
        return 2
    os.execv(command, [command, *words])
    return 1


def main(words):
    """Runs the commands that are written in Python here, and everything else by the command; its exit status."""
    if words[:1] == ["run"]:
        from mtprof.run.run_command import main as run
        return run(words[1:])
    if words[:1] == ["view"]:
        from mtprof.view import main as view
        return view(words[1:])
    if words[:2] == ["export", "parquet"]:
        from mtprof.dataset.parquet_command import main as parquet
        return parquet(words[2:])
    if words[:1] == ["query"]:
        from mtprof.dataset.query_command import main as query
        return query(words[1:])
    return become_command(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
