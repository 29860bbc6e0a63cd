#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler does on every schedule: callbacks, windows, warnings.

    torch_schedules.py [SEED [N]]             asks torch and us for a sample; is the golden file still true?
    torch_schedules.py write FILE [LONGEST]   keeps torch's answers for all sequences (json.gz)

Runs under a Python that has torch. torch may crash on a sequence; that is its answer then ("crash").
"""
import gzip
import importlib.util
import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from support_schedules import run, sequences  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "python" / "schedules.json.gz"


def child(wanted, out):
    """Answers in a process of its own, a line before and after each: the last "at" is where it died."""
    import torch.profiler
    with os.fdopen(out, "w") as file:
        for letters in wanted:
            print("at", letters, file=file, flush=True)
            print("is", json.dumps(run(torch.profiler, letters)), file=file, flush=True)


def ask(wanted):
    """torch's answers. It is imported once; a child that dies has crashed on the sequence it was at."""
    import torch.profiler
    run(torch.profiler, "S")  # what torch sets up once is set up before the forks
    answers, left = {}, list(wanted)
    while left:
        readable, writable = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(readable)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                child(left[:500], writable)
                status = 0
            finally:
                os._exit(status)
        os.close(writable)
        at, before = None, len(answers)
        with os.fdopen(readable) as file:
            for line in file:
                if line.startswith("at "):
                    at = line[3:].strip()
                elif at is not None:
                    answers[at], at = json.loads(line[3:]), None
        _, status = os.waitpid(pid, 0)
        if at is not None:
            if not os.WIFSIGNALED(status):
                raise RuntimeError(f"{at}: torch failed, status {status}")
            answers[at] = "crash"
        if len(answers) == before:
            raise RuntimeError("no answer: torch does not run here")
        left = [letters for letters in left if letters not in answers]
    return answers


def check(seed, count):
    """A sample of the golden file against torch as it is here, and against ours."""
    import mtprof
    known = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    sample = random.Random(seed).sample(sorted(known), count)
    failed = 0
    for letters, theirs in ask(sample).items():
        mine = run(mtprof, letters)  # may not crash where torch does
        if theirs != known[letters]:
            failed += 1
            print(f"{letters}: the golden file has {known[letters]}, torch says {theirs}")
        elif theirs not in ("crash", mine):
            failed += 1
            print(f"{letters}: torch {theirs}, ours {mine}")
    print(f"schedules: {count} of {len(known)}, seed {seed}")
    print(f"{count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def main(arguments):
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    if arguments and arguments[0] == "write":
        answers = ask(sequences(int(arguments[2]) if len(arguments) > 2 else 6))
        text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
        Path(arguments[1]).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(len(answers), "sequences,", sum(1 for a in answers.values() if a == "crash"), "crashes")
        return 0
    numbers = [int(argument) for argument in arguments]
    return check(numbers[0] if numbers else 1, numbers[1] if len(numbers) > 1 else 150)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
