#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The report's page in a real browser: silent, complete, and with the numbers of the command. What Jupyter's kernel
# shows of our objects, in the same browser.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "0 passed, 0 failed, 1 skipped: no Chromium is installed (Debian's package chromium)"
    exit 0
fi
targets mtprof_command make_peer_trace make_cli_trace make_random_traces make_long_trace python_tree
node_packages playwright-core@1.65.0
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
npu_trace "$work/traces/stacks.mtt" stacks
pages=0 long=0 random=0 notebook=0
node tests/peers/viewers/report_page.mjs "$modules" "$browser" "$build/cli/mtprof" \
    "$work/traces/rank0.mtt" "$work/traces/train.mtt" "$work/traces/odd.mtt" "$work/traces/npu.mtt" \
    "$work/traces/stacks.mtt" "$work/traces/slow.mtt" tests/golden/torch-traces/full.fix.json.gz || pages=$?
count=80
events=200000 most=
if [ -n "${PEERS_LONG:-}" ]; then
    count=1000
    events=10000000 most=1000 # milliseconds to the first paint: only whoever asks for it judges times
fi
node tests/peers/viewers/report_long.mjs "$modules" "$browser" "$build/cli/mtprof" "$build/tests/make_long_trace" \
    $events $most || long=$?
node tests/peers/viewers/report_random.mjs "$modules" "$browser" "$build/cli/mtprof" "$build/tests/make_random_traces" \
    1 $count || random=$?
environment tools/peers/packages_notebook.txt
export IPYTHONDIR="$work/ipython" JUPYTER_DATA_DIR="$work/jupyter" JUPYTER_RUNTIME_DIR="$work/runtime"
mkdir -p "$work/runtime"
"$venv/bin/python" tests/peers/viewers/notebook_run.py "$build/python" "$work/shown.html" &&
    node tests/peers/viewers/notebook_look.mjs "$modules" "$browser" "$work/shown.html" "$work" || notebook=$?
[ $pages -eq 0 ] && [ $long -eq 0 ] && [ $random -eq 0 ] && [ $notebook -eq 0 ]
