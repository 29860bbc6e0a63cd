#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# one_peer.sh NAME: runs peer_NAME.sh, and shows what it printed in one piece when it has ended, so that peers can
# run at the same time.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/peers
started=$(date +%s)
status=0
sh "tools/peers/peer_$1.sh" >"build/peers/$1.out" 2>&1 || status=1
exec 9>build/peers/show.lock
flock 9
echo "tools/peers/peer_$1.sh"
cat "build/peers/$1.out"
echo "($1 took $(($(date +%s) - started)) s)"
exit $status
