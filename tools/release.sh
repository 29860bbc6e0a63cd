#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes a release: checks, then the source archive and the wheel, then the tag. Without --tag it can be tried
# at any time: what only a release needs (the changelog's date, a new tag) is then noted, not refused.
#
#     tools/release.sh [--tag] [FOLDER]      archives go to FOLDER (default: dist)
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
tag=
ready=yes
folder=dist
for argument; do
    case $argument in
        --tag) tag=yes ;;
        -*) echo "usage: tools/release.sh [--tag] [FOLDER]" >&2; exit 2 ;;
        *) folder=$argument ;;
    esac
done

die() {
    echo "release: $*" >&2
    exit 1
}

# unready TEXT: with --tag this is the end, without it a note.
unready() {
    [ -z "$tag" ] || die "$*"
    echo "release: not ready: $*"
    ready=
}

# number WORD: MTPROF_VERSION_WORD of the header.
number() {
    sed -n "s/^#define MTPROF_VERSION_$1 *\([0-9][0-9]*\)$/\1/p" include/mtprof/version.h
}

backend() {
    "$python" -c "import sys; sys.path.insert(0, 'tools'); import wheel_backend; $1"
}

[ -z "$(git status --porcelain)" ] || die "the tree has changes that are not committed: git status"
version=$(number MAJOR).$(number MINOR).$(number PATCH)
wheel=$(backend "print(wheel_backend.STEM.rpartition('-')[2])")
[ "$wheel" = "$version" ] || die "include/mtprof/version.h says $version, the wheel $wheel"
grep -q "^## \[$version\] - [0-9]\{4\}-[0-9][0-9]-[0-9][0-9]$" CHANGELOG.md ||
    unready "CHANGELOG.md has no section '## [$version] - YYYY-MM-DD'"
unreleased=$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -c '^- ' || true)
[ "$unreleased" = 0 ] || unready "CHANGELOG.md has $unreleased entries that are still 'Unreleased'"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || unready "the tag v$version exists already"

mkdir -p "$folder"
for kind in sdist wheel; do
    echo "release: building the $kind of $version"
    backend "print('$folder/' + wheel_backend.build_$kind('$folder'))"
done
if [ -n "$tag" ]; then
    git tag -a "v$version" -m "mindtorch $version"
    echo "release: tagged v$version; publish it with: git push origin v$version"
elif [ -n "$ready" ]; then
    echo "release: all is well. 'tools/release.sh --tag' would tag v$version"
else
    echo "release: the archives are built; 'tools/release.sh --tag' would refuse for the reasons above"
fi
