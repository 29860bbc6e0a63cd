# SPDX-License-Identifier: Apache-2.0
"""Arguments that ask for more work, or more memory, than there can be: clamped or refused at once. Each runs in a
process of its own with an address space of 6 GiB; what runs on is killed, and fails the test."""
import os
import resource
import signal
import time
import unittest

import mindtorch_v2 as torch

F = torch.nn.functional

# Per line: an expression of N, how it ends: a shape, a number of parts, or an exception (E: any one).
CASES = """
x.diff(N)                               (0,)
torch.zeros(2, 3).diff(N, 0)            (0, 3)
torch.zeros(N, 0).diff(2, 0).shape[1:]  0
x.tensor_split(N)                       MemoryError
torch.zeros(N, 0).tensor_split(N)       MemoryError
x.tensor_split([N])                     2
x.tensor_split([-N])                    2
x.chunk(N)                              3
e.chunk(N)                              E
x.split(N)                              1
torch.zeros(N, 0).unbind(0)             E
torch.zeros(N, 0).split(1)              E
torch.zeros(N, 0).chunk(N)              E
list(torch.zeros(N, 0))                 E
torch.zeros(N, 0).tolist()              MemoryError
x.unfold(0, N, 1)                       RuntimeError
x.unfold(0, 1, N)                       (1, 1)
x.repeat(N, N)                          E
x.tile((N, N))                          E
x.repeat_interleave(N)                  E
x.roll(N)                               (3,)
x.expand(N, 3)                          E or shape
F.pad(x, (N, N))                        E
F.pad(im, (N, 0), mode='replicate')     E
F.pad(im, (-N, 0), mode='replicate')    RuntimeError
F.pad(im, (N, 0), mode='circular')      RuntimeError
F.pad(im, (N, 0), mode='reflect')       RuntimeError
F.one_hot(i, N)                         E
torch.bincount(i, minlength=N)          E
torch.tensordot(m, m, N)                RuntimeError
torch.tensordot(m, m, -N)               RuntimeError
torch.arange(N)                         E
torch.arange(0., float(N), 1e-300)      E
torch.linspace(0, 1, N)                 E
torch.eye(N)                            E
torch.randperm(N)                       E
torch.zeros(N, N)                       E
torch.tril_indices(N, N)                E
torch.multinomial(x, N, True)           E
x.topk(N)                               E
x.movedim(0, N)                         IndexError
x.flip(N)                               IndexError
x[N]                                    IndexError
x[:N]                                   (3,)
x[::N]                                  (1,)
F.max_pool1d(im, N)                     RuntimeError
F.avg_pool1d(im, N)                     RuntimeError
F.adaptive_avg_pool1d(im, N)            E
F.conv1d(im, im, padding=N)             E
F.conv1d(im, im, dilation=N)            E
m.triu(N)                               (3, 3)
m.diagonal(N)                           (0,)
torch.diag(x, N)                        E
x.random_(0, N)                         (3,)
i ** N                                  (3,)
""".strip().splitlines()


def show(value):
    if isinstance(value, torch.Tensor):
        return str(tuple(value.shape))
    return str(len(value)) if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size) else str(value)


def evaluate(text, number):
    """What comes of an expression in a process of its own."""
    names = {"torch": torch, "F": F, "N": number, "x": torch.tensor([1.0, 2.0, 3.0]), "i": torch.tensor([0, 1, 2]),
             "e": torch.zeros(0), "m": torch.eye(3), "im": torch.ones(1, 2, 4)}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        try:
            said = show(eval(text, names))
        except Exception as error:
            said = type(error).__name__
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    begin = time.monotonic()
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() - begin > 60:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            return "it ran on and on"
        time.sleep(0.001)
    with open(reading, "rb") as file:
        return file.read().decode() or "it died"


class HugeArguments(unittest.TestCase):
    def test_all(self):
        errors = {"RuntimeError", "MemoryError", "IndexError", "ValueError", "OverflowError", "OutOfMemoryError"}
        for line in CASES:
            text, _, expected = (part.strip() for part in line.partition("  "))
            for number in (2**40, 2**62, 2**63 - 1):
                with self.subTest(text, N=number):
                    got = evaluate(text, number)
                    if expected.startswith("E"):
                        self.assertTrue(got in errors or expected.endswith("shape") and got.startswith("("), got)
                    elif number != 2**40 and "zeros(N" in text:
                        self.assertIn(got, errors | {expected})  # zeros() itself refuses it
                    else:
                        self.assertEqual(got.replace("torch.Size([0])", "0"), expected)

    def test_negative(self):
        with self.assertRaisesRegex(RuntimeError, "order must be non-negative but got -1"):
            torch.ones(3).diff(-1)
        for dims, why in ((-1, "dims >= 0"), (3, "dims < ndim_a or ndim_b")):
            with self.assertRaisesRegex(RuntimeError, why):
                torch.tensordot(torch.eye(3), torch.eye(3), dims)

    def test_what_stays(self):
        self.assertEqual(torch.arange(4).diff(2).tolist(), [0, 0])
        self.assertEqual(torch.arange(4).diff(0).tolist(), [0, 1, 2, 3])
        self.assertEqual(torch.arange(2).diff(5).shape, (0,))
        self.assertEqual([p.tolist() for p in torch.arange(2).tensor_split(4)], [[0], [1], [], []])
        x = torch.arange(3.0).view(1, 1, 3)
        for mode, expected in (("circular", [2.0, 0.0, 1.0, 2.0, 0.0, 1.0]),
                               ("replicate", [0.0, 0.0, 1.0, 2.0, 2.0, 2.0]),
                               ("reflect", [1.0, 0.0, 1.0, 2.0, 1.0, 0.0])):
            self.assertEqual(F.pad(x, (1, 2), mode=mode).flatten().tolist(), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
