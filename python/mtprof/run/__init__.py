# SPDX-License-Identifier: Apache-2.0
"""mtprof run: profiles a Python program that nobody has to change.

    mtprof run --calls train.py --epochs 3
    python -m mtprof run -m package

run_command.py understands the command line and becomes `python SCRIPT ARGUMENTS`: the program is run by the
interpreter itself, not by us, so everything about it is as without us. The interpreter finds
start/sitecustomize.py, which removes what led to it and arms recording.py; that begins to record with the first
frame of the program's main module, and tells at the end what was recorded.
"""
