#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a shared library exports with the list in tools/abi/.

usage: check_abi.py [--update] [LIBRARY]     (LIBRARY: build/dev/libmtprof.so)

The list is tools/abi/<name>.txt for lib<name>.so, one symbol a line, sorted. Every exported symbol
starts with the library's prefix (mtprof_, mt_). --update rewrites the list;
the difference is then for the reviewer to judge.
"""
import argparse
import pathlib
import subprocess
import sys

# Others: the name itself. Collectors export what the programs that open them look for.
PREFIXES = {"mindtorch": "mt_", "mindtorch_sim": "mt_", "mtprof_cuda": "InitializeInjection",
            "mtprof_itt": "__itt_api_", "mtprof_nvtx": "InitializeInjection"}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def exported(library):
    """Names the dynamic linker can see, sorted."""
    shown = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library],
                           capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[0].split("@")[0] for line in shown.splitlines()})


def main():
    parser = argparse.ArgumentParser(prog="check_abi.py", description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="rewrite the list")
    parser.add_argument("library", nargs="?", type=pathlib.Path, default=ROOT / "build/dev/libmtprof.so")
    options = parser.parse_args()
    name = options.library.name.split(".so")[0].removeprefix("lib")
    path = ROOT / "tools/abi" / f"{name}.txt"
    have = exported(options.library)
    prefix = PREFIXES.get(name, name + "_")
    bad = [f"{s}: exported, but does not start with {prefix}" for s in have
           if not s.startswith(prefix) or s.startswith(prefix + "_")]
    if options.update:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(s + "\n" for s in have))
    listed = path.read_text().split() if path.exists() else []
    if listed != sorted(set(listed)):
        bad.append(f"{path.name}: not sorted, or a symbol is listed twice")
    bad += [f"{s}: exported, but not in the list" for s in have if s not in listed]
    bad += [f"{s}: in the list, but not exported" for s in listed if s not in have]
    for line in bad:
        print(line)
    if bad:
        print(f"check_abi: {len(bad)} differences from tools/abi/{path.name}; if they are meant: "
              "python3 tools/check_abi.py --update")
        return 1
    print(f"check_abi: {len(have)} symbols as listed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
