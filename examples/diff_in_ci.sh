#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A build that fails when something got slower: record the same program before and after a change,
# let `mtprof diff` judge. It looks past the noise between steps, and its exit code says what it found:
# 0 nothing, 3 something slower, 1 or 2 that it could not compare, 4 that a trace is damaged.
#
#     diff_in_ci.sh BASE.mtt CHANGE.mtt [PERCENT]          MTPROF names the command (mtprof)
set -u
base=$1
change=$2
percent=${3:-10}
mtprof=${MTPROF:-mtprof}

"$mtprof" diff --quiet --threshold "$percent" --min-time 100us "$base" "$change"
status=$?
case $status in
    0) echo "nothing got more than $percent % slower" ;;
    3)
        echo "something got more than $percent % slower; .pftrace files for Perfetto are next to the traces"
        "$mtprof" export --quiet perfetto "$base" -o "${base%.mtt}.pftrace"
        "$mtprof" export --quiet perfetto "$change" -o "${change%.mtt}.pftrace"
        ;;
    *) echo "the traces could not be compared" ;;
esac
exit $status
