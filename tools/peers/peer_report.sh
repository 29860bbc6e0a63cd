#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The report's page in a real browser: silent, complete, and with the numbers of the command.
set -eu
. "$(dirname "$0")/peers.inc.sh"
. tools/peers/npu.inc.sh

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "0 passed, 0 failed, 1 skipped: no Chromium is installed (Debian's package chromium)"
    exit 0
fi
targets mtprof_command make_peer_trace make_cli_trace python_tree
node_packages playwright-core@1.65.0
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"
npu_trace "$work/traces/npu.mtt"
exec node tests/peers/viewers/report_page.mjs "$modules" "$browser" "$build/cli/mtprof" \
    "$work/traces/rank0.mtt" "$work/traces/train.mtt" "$work/traces/odd.mtt" "$work/traces/npu.mtt"
