#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler does on every schedule: callbacks, windows, warnings.

    torch_schedules.py write FILE [LONGEST]     keeps torch's answers for all sequences (json.gz)
    torch_schedules.py check FILE [SEED [N]]    asks torch again for a sample: is the file still true?

Runs under a Python that has torch. torch may crash on a sequence; that is its answer then ("crash").
"""
import gzip
import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from support_schedules import run, sequences  # noqa: E402


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


def main(arguments):
    command = arguments[0] if arguments else ""
    if command == "write":
        answers = ask(sequences(int(arguments[2]) if len(arguments) > 2 else 6))
        text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
        Path(arguments[1]).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(len(answers), "sequences,", sum(1 for a in answers.values() if isinstance(a, str)), "crashes")
    elif command == "check":
        known = json.loads(gzip.decompress(Path(arguments[1]).read_bytes()))
        seed = int(arguments[2]) if len(arguments) > 2 else 1
        sample = random.Random(seed).sample(sorted(known), int(arguments[3]) if len(arguments) > 3 else 200)
        wrong = [(key, known[key], answer) for key, answer in ask(sample).items() if answer != known[key]]
        for key, was, now in wrong[:10]:
            print(f"{key}: the file has {was}, torch says {now}")
        print(f"{len(sample)} sequences asked again, seed {seed}: {len(wrong)} differ")
        return 1 if wrong else 0
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
