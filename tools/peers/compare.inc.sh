# SPDX-License-Identifier: Apache-2.0
#
# compare PROGRAM ARGUMENTS...: shows what it prints, and adds its last line up in passed, failed, skipped.
compare() {
    "$venv/bin/python" -W ignore "$@" >"$work/compare.log" 2>&1 || true
    cat "$work/compare.log"
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/compare.log" | tail -n 1 |
        sed 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/')
    [ -n "$counts" ] || fail "$1 did not come to its end"
    # shellcheck disable=SC2086 # three numbers
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}
