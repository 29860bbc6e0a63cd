# SPDX-License-Identifier: Apache-2.0
"""The shim of tier "compiled": torch_shim.cpp, built with the headers of the installed torch, once for each version.

It is kept in $XDG_CACHE_HOME/mtprof (~/.cache/mtprof), a folder that nobody else may write to: what is in it is
loaded into the process.
"""
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import torch

_SOURCE = pathlib.Path(__file__).with_name("torch_shim.cpp")
_STANDARDS = ("c++17", "c++20")  # newer versions of torch may need the latter
_COMPILERS = ("c++", "g++", "clang++")
_SECONDS = 300


class ShimError(Exception):
    """Why there is no shim, in one sentence."""


def _find_compiler():
    asked = os.environ.get("CXX")
    for name in [asked] if asked else _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    if asked:
        raise ShimError(f"a C++ compiler is missing: CXX is {asked!r}, which is not found")
    raise ShimError(f"a C++ compiler is missing: none of {', '.join(_COMPILERS)} is found; install one, or set CXX")


def _include_paths():
    try:
        from torch.utils.cpp_extension import include_paths
        return include_paths()
    except ImportError:  # some versions need setuptools for it
        include = pathlib.Path(torch.__file__).parent / "include"
        return [str(include), str(include / "torch" / "csrc" / "api" / "include")]


def _folder():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(home) / "mtprof"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError as error:
        raise ShimError(f"a folder for the shim is missing: {error}") from None
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022:
        raise ShimError(f"{folder} is not used for the shim: others may write to it")
    return folder


def _compile(compiler, flags, target):
    said = ""
    for standard in _STANDARDS:
        command = [compiler, f"-std={standard}", *flags, "-o", str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS,
                                  check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ShimError(f"{compiler} could not build the shim: {error}") from None
        if done.returncode == 0:
            return
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
    raise ShimError(f"{compiler} could not build the shim: {said}")


def build():
    """The path of the shim for the torch of this process, built where there is none. Raises ShimError."""
    folder, paths = _folder(), _include_paths()
    library = pathlib.Path(torch.__file__).parent / "lib"
    flags = ["-O1", "-fPIC", "-shared", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
             *(f"-isystem{path}" for path in paths), str(_SOURCE), f"-L{library}", "-ltorch_cpu", "-lc10"]
    key = hashlib.sha256("\0".join([_SOURCE.read_text(), torch.__version__, *flags]).encode()).hexdigest()[:16]
    path = folder / f"torch_shim-{torch.__version__}-{key}.so"
    if path.exists():
        return str(path)
    compiler = _find_compiler()
    if not any((pathlib.Path(place) / "ATen" / "record_function.h").exists() for place in paths):
        raise ShimError(f"torch's headers are missing: ATen/record_function.h is not in {', '.join(paths)}")
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as beside:
        made = pathlib.Path(beside) / "shim.so"
        _compile(compiler, flags, made)
        os.replace(made, path)
    return str(path)
