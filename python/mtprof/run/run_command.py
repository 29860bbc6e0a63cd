# SPDX-License-Identifier: Apache-2.0
"""The command line of `mtprof run`: understood here, then this process becomes the interpreter with the program."""
import json
import math
import os
import sys

from mtprof import _mtprof
from mtprof.command_line import CommandLine, Misuse, Option
from mtprof.config import parse_bytes, parse_share

USAGE = "mtprof run [OPTIONS] SCRIPT|-m MODULE|-c CODE|- [ARGUMENTS]"
USAGE_OF_OTHERS = "mtprof run [OPTIONS] -- PROGRAM [ARGUMENTS]"
DETAILS = """\
The program is run by this Python as `python SCRIPT ARGUMENTS` runs it: its output, exit status, tracebacks and \
signals are its own. Ops and scopes of torch, mindtorch_v2 and mtprof are always recorded, on every thread; other \
processes that the program starts are not. The trace is written while the program runs, so it is there whatever ends it.

A step ends with each step() of an optimizer of torch or mindtorch_v2; where there are several optimizers, the first \
one that steps counts. --wait, --warmup, --active and --repeat are those of mtprof.schedule().

With '--' any other program is run, and what it reports to NVTX or ITT is recorded; --output, --path, --ring, --rows \
and --quiet are its options.

Exit status: the program's; 1 where nothing can be recorded to the file; 2 for a wrong command line. The program is \
not started then."""

def _steps(least):
    def parse(text):
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"a number of steps, {least} or more")
        return int(text)
    return parse


def _seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e9:
        raise ValueError("a number of seconds, as in 30 or 0.5")
    return value


def _size(text):
    try:
        size = parse_bytes("--ring", text)
    except ValueError:
        size = 0
    if size < 1 << 16:
        raise ValueError("a number of bytes, as in 64M or 1G, 64K or more")
    return size


def _share(text):
    try:
        return parse_share("--overhead", text) / 1e6
    except ValueError:
        raise ValueError("a part of the processor time, as in 1% or 0.5%") from None


def _rows(text):
    if not text.isdecimal():
        raise ValueError("a number of rows")
    return int(text)


OPTIONS = (
    Option("output", "o", "FILE", "the trace; .json, .json.gz, .pftrace and others are exported when the program ends "
           "(default: NAME-PID.mtt)"),
    Option("path", None, "FOLDER", "folder for the trace, made where it is missing"),
    Option("calls", help="every call of a Python or built-in function"),
    Option("stacks", help="the Python stack of every op and scope"),
    Option("shapes", help="shapes and types of ops' inputs"),
    Option("memory", help="allocations, and the memory that ops allocate"),
    Option("wait", None, "N", "steps to leave out before each recording", _steps(0)),
    Option("warmup", None, "N", "steps to warm up before each recording", _steps(0)),
    Option("active", None, "N", "steps to record", _steps(1)),
    Option("repeat", None, "N", "how often; 0 (the default): until the program ends", _steps(0)),
    Option("delay", None, "S", "seconds from the start of the program to that of the recording", _seconds),
    Option("duration", None, "S", "seconds to record", _seconds),
    Option("ring", None, "SIZE", "keep only the latest events, in this many bytes (64M, 1G)", _size),
    Option("overhead", None, "PART", "the most that recording may take (1%); what does not fit is left out", _share),
    Option("counters", help="counters of the process, ten times a second: CPU, memory, faults …"),
    Option("patch-torch", help="the program's torch.profiler is mtprof's"),
    Option("rows", "n", "N", "rows of the summary (default: 10)", _rows),
    Option("quiet", "q", help="no summary"),
    Option("help", "h", help="this text"),
)


COMMAND = CommandLine("run", f"{USAGE}\n       {USAGE_OF_OTHERS}", "Run a program and record a trace of it.", DETAILS,
                      OPTIONS, ends=("-m", "-c"))  # the rest is the program's, as with python


# ---- understanding ----


def parse(words):
    """(settings by option's name, the words for Python, or None where "--" says that they are for another program);
    Misuse."""
    given, rest = COMMAND.parse(words)
    if rest in (["-m"], ["-c"]):
        raise COMMAND.misuse(f"option '{rest[0]}' needs {'a module' if rest[0] == '-m' else 'code'}")
    return given, None if rest[:1] == ["--"] else rest


def _schedule(given):
    """The numbers of mtprof.schedule(), or None."""
    steps = [name for name in ("wait", "warmup", "active", "repeat") if name in given]
    seconds = [name for name in ("delay", "duration") if name in given]
    if steps and seconds:
        raise COMMAND.misuse(f"--{steps[0]} counts steps and --{seconds[0]} seconds: only one of them can be used")
    if not steps:
        return None
    if "active" not in given:
        raise COMMAND.misuse(f"--{steps[0]} needs --active, the number of steps to record")
    return [given.get(name, 0) for name in ("wait", "warmup", "active", "repeat")]


def _program_name(program):
    """What the trace is called after: the script's or module's name."""
    if program[0].startswith("-m"):
        name = program[0][2:] or program[1]
    elif program[0].startswith("-c"):
        name = "command"
    elif program[0] == "-":
        name = "stdin"
    else:
        name = os.path.basename(os.path.abspath(program[0]))
        name = name.removesuffix(".py") or name
    return name.replace("/", "_") or "program"


def _output(given, program):
    """The trace's path; its folder is there and can be written to."""
    path = given.get("output", f"{_program_name(program)}-{os.getpid()}.mtt")
    if "path" in given:
        try:
            os.makedirs(given["path"], exist_ok=True)
        except OSError as error:
            raise Failure(f"{given['path']}: {error.strerror}") from None
        path = os.path.join(given["path"], path)
    folder = os.path.dirname(path) or "."
    if not path.endswith(".mtt"):
        try:
            _mtprof.export_format(path)
        except ValueError:
            raise COMMAND.misuse(f"option '--output': the ending of '{path}' is none of a trace",
                         ".mtt, .json, .json.gz, .pftrace and those that 'man mtprof' lists under export") from None
    if not os.path.isdir(folder):
        raise Failure(f"{folder}: no such folder")
    if os.path.isdir(path) or not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(f"{path}: cannot be written{': it is a folder' if os.path.isdir(path) else ''}")
    return path


class Failure(Exception):
    """What cannot be done."""


# ---- becoming the program ----


def _check_python():
    flags = sys.flags
    for name, on in (("-I", flags.isolated), ("-E", flags.ignore_environment), ("-S", flags.no_site)):
        if on:
            raise COMMAND.misuse(f"Python's option {name} keeps the profiler from starting", "run it without that option")


def _python_options():
    """The options that the interpreter itself was given: in front of -m mtprof, or of the program mtprof-run."""
    options = sys.orig_argv[1:len(sys.orig_argv) - len(sys.argv)]
    if getattr(sys.modules["__main__"], "__spec__", None) is not None and options and options[-1].endswith("m"):
        options[-1] = options[-1][:-1]  # -m and the options that it shares a word with
    return [word for word in options if word not in ("-", "-c")]  # -c: of a program that calls main()


def _settings(given, program):
    path = _output(given, program)
    schedule = _schedule(given)
    flags = {name.replace("-", "_"): True for name in ("calls", "stacks", "shapes", "memory", "patch-torch", "quiet", "counters")
             if name in given}
    return {"path": os.path.abspath(path), "shown": path, "schedule": schedule, "delay": given.get("delay", 0),
            "duration": given.get("duration"), "ring": given.get("ring"), "overhead": given.get("overhead"),
            "rows": given.get("rows", 10), **flags}


def environment(settings):
    """The environment in which Python starts recording."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start")
    if os.pathsep in folder:
        raise Failure(f"{folder}: a folder of PYTHONPATH cannot have '{os.pathsep}' in its name")
    before = os.environ.get("PYTHONPATH")
    path = folder + os.pathsep + before if before else folder
    return {**os.environ, "PYTHONPATH": path, "MTPROF_RUN": json.dumps(settings)}


def _run(words):
    given, program = parse(words)
    if given.get("help"):
        COMMAND.print_help()
        return 0
    if program is None:  # the command does that itself
        from mtprof.__main__ import become_command
        return become_command(["run", *words])
    as_torch = program[:2] == ["-m", "mindtorch_v2"] and len(program) > 2
    if as_torch:  # what it would run, recorded and in torch's place
        program = program[2:]
    if not program:
        raise COMMAND.misuse("a script, -m MODULE or -c CODE is needed", f"usage: {USAGE}")
    _check_python()
    _schedule(given)
    return _become(program, {"record": _settings(given, program), "as_torch": as_torch})


def _become(program, settings):
    """This process becomes the interpreter that runs the program."""
    os.execve(sys.executable, [sys.executable, *_python_options(), *program], environment(settings))
    return 1


def run_as_torch(words):
    """python -m mindtorch_v2: runs a program with mindtorch_v2 in torch's place, unrecorded; as main()."""
    usage = "python -m mindtorch_v2 SCRIPT|-m MODULE|-c CODE|- [ARGUMENTS]"
    if words[:1] in (["-h"], ["--help"]):
        print(f"usage: {usage}\n\nRun a program of torch on mindtorch_v2: `import torch` and all that is under it mean "
              "mindtorch_v2,\nin the program, in its packages and in Python processes that it starts.")
        return 0
    try:
        if not words or (words[0].startswith("-") and words[0] != "-" and words[0][:2] not in ("-m", "-c")):
            raise COMMAND.misuse("a script, -m MODULE or -c CODE is needed", f"usage: {usage}")
        _check_python()
        return _become(words, {"as_torch": True})
    except Misuse as error:
        print(f"mindtorch_v2: {error}\n  hint: {error.hint}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        print(f"mindtorch_v2: {error}", file=sys.stderr)
        return 1


def main(words=None):
    """Runs a program under the profiler: does not return, unless with an exit status for what went wrong."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["__complete"]:
        COMMAND.complete(words[1:])
        return 0
    try:
        return _run(words)
    except Misuse as error:
        print(f"mtprof: run: {error}\n  hint: {error.hint}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        print(f"mtprof: run: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
