# SPDX-License-Identifier: Apache-2.0
"""python -m mindtorch_v2 SCRIPT: runs a program of torch on mindtorch_v2, as `python SCRIPT` would on torch."""
import sys

from mtprof.run.run_command import run_as_torch

if __name__ == "__main__":
    sys.exit(run_as_torch(sys.argv[1:]))
