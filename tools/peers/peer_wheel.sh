#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The wheel as a user gets it: built from the dev build, installed by pip into an empty environment (no network
# needed), used from another folder.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree mtprof_command
rm -rf "$work/wheel" "$work/venv"
mkdir -p "$work/wheel"
MINDTORCH_BUILD_DIR=$build timed "build the wheel" "$python" tools/wheel_backend.py "$work/wheel" ||
    fail "cannot build the wheel"
timed "make an environment" "$python" -m venv "$work/venv" ||
    fail "cannot make a virtual environment with $python (Debian: python3-venv)"
timed "install the wheel" "$work/venv/bin/python" -m pip install -q --no-index --no-deps \
    --disable-pip-version-check "$work"/wheel/*.whl || fail "cannot install the wheel"
cp tests/install/wheel_smoke.py "$work/wheel_smoke.py" # away from our sources
cd "$work"
PATH=$work/venv/bin:$PATH "$work/venv/bin/python" wheel_smoke.py
