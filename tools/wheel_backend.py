# SPDX-License-Identifier: Apache-2.0
"""pip's way to our build (PEP 517, 660): runs CMake and packs what it installs into a wheel.

The wheel holds the packages mtprof and mindtorch_v2, libmtprof and libmindtorch next to the
extension that needs each, the simulated accelerator next to libmindtorch, the mtprof command, and
mtprof-run as an entry point, which pip makes a program of.
Standard library only, so that it works without a network.

MINDTORCH_BUILD_DIR names a build folder that is to be used instead of one made here; pip's
--config-settings take builddir and cmake (further arguments, blank separated).
"""
import base64
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PROJECT["version"] = ".".join(re.findall(r"(?m)^#define MTPROF_VERSION_[A-Z]+ +(\d+)$",
                                         (ROOT / "include/mtprof/version.h").read_text()))
STEM = f"{PROJECT['name']}-{PROJECT['version']}"
STAMP = (2020, 1, 1, 0, 0, 0)  # the same files give the same wheel
LEFT_OUT = {"build", "dist", ".git", ".venv", ".cache", "__pycache__", ".pytest_cache"}


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    abi = python + ("d" if hasattr(sys, "gettotalrefcount") else "")
    return f"{python}-{abi}-{platform}"


def metadata():
    lines = ["Metadata-Version: 2.3", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}",
             f"Summary: {PROJECT['description']}", f"Keywords: {','.join(PROJECT['keywords'])}",
             f"License: {PROJECT['license']}", f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Classifier: {text}" for text in PROJECT["classifiers"]]
    for extra, needs in PROJECT["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"]
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / PROJECT["readme"]).read_text()]
    return "\n".join(lines)


def information():
    """The files of the .dist-info folder but for RECORD, by name."""
    return {"METADATA": metadata(),
            "WHEEL": "Wheel-Version: 1.0\nGenerator: mindtorch wheel_backend\n"
                     f"Root-Is-Purelib: false\nTag: {tag()}\n",
            "entry_points.txt": "[console_scripts]\n" + "".join(
                f"{name} = {function}\n" for name, function in PROJECT["scripts"].items()),
            "licenses/LICENSE": (ROOT / "LICENSE").read_text()}


def run(*command):
    print("$", shlex.join(map(str, command)), flush=True)
    try:
        done = subprocess.run([str(word) for word in command])
    except FileNotFoundError:
        sys.exit(f"mindtorch: {command[0]} is not installed; building needs cmake, ninja and a C compiler")
    if done.returncode != 0:
        sys.exit(f"mindtorch: {command[0]} failed with status {done.returncode}; its output is above")


def built(settings):
    """A build folder with everything in it."""
    settings = settings or {}
    given = settings.get("builddir") or os.environ.get("MINDTORCH_BUILD_DIR")
    folder = pathlib.Path(given).resolve() if given else ROOT / "build" / "wheel" / tag()
    if not (given and (folder / "CMakeCache.txt").exists()):
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_C_FLAGS_RELEASE=-O2 -g1 -DNDEBUG", f"-DMT_PYTHON={sys.executable}",
            "-DMT_BUILD_TESTS=OFF", "-DMT_BUILD_EXAMPLES=OFF", "-DMT_HEADER_PROBE=OFF",
            *shlex.split(settings.get("cmake", "")))
    run("cmake", "--build", folder, "--target", "python_tree", "mtprof_command")
    return folder


class Wheel:
    """A wheel that is being written; RECORD comes last."""

    def __init__(self, folder):
        self.name = f"{STEM}-{tag()}.whl"
        self.info = f"{STEM}.dist-info"
        self.record = []
        self.zip = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)

    def add(self, name, data, executable=False):
        data = data.encode() if isinstance(data, str) else data
        entry = zipfile.ZipInfo(name, STAMP)
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        for name, text in information().items():
            self.add(f"{self.info}/{name}", text)
        self.zip.writestr(zipfile.ZipInfo(f"{self.info}/RECORD", STAMP),
                          "\n".join(self.record + [f"{self.info}/RECORD,,", ""]))
        self.zip.close()
        return self.name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip asks for first. Without this hook it would build the whole wheel to find out, in silence."""
    folder = pathlib.Path(metadata_directory) / f"{STEM}.dist-info"
    for name, text in information().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = built(config_settings)
    wheel = Wheel(wheel_directory)
    with tempfile.TemporaryDirectory() as stage:
        run("cmake", "--install", folder, "--component", "python", "--prefix", stage)
        stage = pathlib.Path(stage)
        for path in sorted(stage.rglob("*")):
            if path.is_dir() or path.is_symlink():
                continue
            name = path.relative_to(stage).as_posix()
            if name.startswith("bin/"):
                wheel.add(f"{STEM}.data/scripts/{path.name}", path.read_bytes(), executable=True)
                continue
            # A wheel holds no links: a library goes in under its SONAME.
            name = re.sub(r"(\.so\.\d+)[.\d]*$", r"\1", name)
            wheel.add(name, path.read_bytes(), executable=".so" in path.name)
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The packages stay where they are: a .pth names the build's tree, whose Python files are links."""
    folder = built(config_settings)
    wheel = Wheel(wheel_directory)
    wheel.add("mindtorch_editable.pth", f"{folder / 'python'}\n")
    wheel.add(f"{STEM}.data/scripts/mtprof", (folder / "cli" / "mtprof").read_bytes(), executable=True)
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    name = f"{STEM}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz") as tar:
        for path in sorted(ROOT.iterdir()):
            if path.name not in LEFT_OUT:
                tar.add(path, f"{STEM}/{path.name}",
                        filter=lambda info: None if pathlib.PurePath(info.name).name in LEFT_OUT else info)
        with tempfile.NamedTemporaryFile("w") as text:
            text.write(metadata())
            text.flush()
            tar.add(text.name, f"{STEM}/PKG-INFO")
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel


if __name__ == "__main__":  # wheel_backend.py FOLDER: without pip
    os.makedirs(sys.argv[1], exist_ok=True)
    print(build_wheel(sys.argv[1]))
