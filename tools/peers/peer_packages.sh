#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Packages from the index that nobody here wrote, on mindtorch_v2 in torch's place and on torch: components of theirs
# take the same training steps. Asked for by its name it takes all, in the run of all peers (PEERS_BUILT) a few.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets python_tree
environment tools/peers/packages_torch.txt
list=$work/list.txt
if [ -n "${PEERS_BUILT:-}" ]; then
    chosen=short
    sed '/^# the rest/,$d' tools/peers/packages_components.txt >"$list.$chosen"
else
    chosen=all
    cp tools/peers/packages_components.txt "$list.$chosen"
fi
site=$work/site_$chosen
if ! cmp -s "$list.$chosen" "$site/made_from"; then
    rm -rf "$site"
    timed "install packages ($chosen)" "$venv/bin/python" -m pip install -q --no-deps --no-compile --no-input \
        --retries 2 --timeout 60 --disable-pip-version-check --target "$site" -r "$list.$chosen" ||
        fail "cannot install $list.$chosen: does pip reach its index? what it said is above"
    cp "$list.$chosen" "$site/made_from"
fi
export KINETO_LOG_LEVEL=99 TORCH_CPP_LOG_LEVEL=ERROR OMP_NUM_THREADS=1
export PYTHONPATH="$site:$build/python"

passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh
compare tests/peers/packages/packages_compare.py "$work/weights" "$chosen"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
