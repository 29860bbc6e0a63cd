# SPDX-License-Identifier: Apache-2.0
"""Records what torch answers to small programs of views and writes in place: view_cases.def.

    python record_views.py > view_cases.def           (with torch; the seed is fixed)

A program is a line of statements; test_autograd_views.c runs the same ones. x [2, 3] and w [3] are
leaves that require gradients, k [3] and z [2, 3] do not. The loss is the sum of the squares of all
variables that require a gradient by then. Recorded are the gradients of x and w, those of the sum of
the squares of these gradients (the second derivative), or the words of the error.
"""
import random
import sys

import torch

VIEWS = ("view", "sel", "sl", "t", "unsq", "diag", "ub", "sp", "as", "det")
WRITES_NUMBER = ("muls_", "adds_", "fill_", "exp_", "sig_", "zero_")
WRITES_TENSOR = ("mul_", "add_", "copy_", "div_")


def start():
    d = torch.float64
    return {
        "x": torch.tensor([[0.5, -0.25, 0.75], [1.0, -0.5, 0.25]], dtype=d, requires_grad=True),
        "w": torch.tensor([0.8, -1.2, 0.4], dtype=d, requires_grad=True),
        "k": torch.tensor([0.5, 1.5, -0.75], dtype=d),
        "z": torch.zeros(2, 3, dtype=d),
    }


def run_view(op, a, n):
    if op == "view":
        return a.view(n)
    if op == "sel":
        return a.select(n[0], n[1])
    if op == "sl":
        return torch.narrow(a, n[0], n[1], n[2])
    if op == "t":
        return a.transpose(0, 1)
    if op == "unsq":
        return a.unsqueeze(n[0])
    if op == "diag":
        return a.diagonal()
    if op == "ub":
        return a.unbind(0)[n[0]]
    if op == "sp":
        return a.split(1, 0)[n[0]]
    if op == "as":
        return a.as_strided((2, 2), (1, 2), n[0])
    return a.detach()


def run_write(op, a, b, number):
    if op in WRITES_TENSOR:
        return getattr(a, op)(b)
    return {
        "muls_": lambda: a.mul_(number),
        "adds_": lambda: a.add_(number),
        "fill_": lambda: a.fill_(number),
        "exp_": lambda: a.exp_(),
        "sig_": lambda: a.sigmoid_(),
        "zero_": lambda: a.zero_(),
    }[op]()


def run(program):
    env = start()
    torch.set_grad_enabled(True)
    for statement in program.split(" ; "):
        p = statement.split()
        if p[0] in ("ng", "g"):
            torch.set_grad_enabled(p[0] == "g")
        elif p[1] == "=":
            op, rest = p[2], p[3:]
            if op in VIEWS:
                env[p[0]] = run_view(op, env[rest[0]], [int(i) for i in rest[1:]])
            elif op == "muls":
                env[p[0]] = env[rest[0]] * float(rest[1])
            elif op == "exp":
                env[p[0]] = env[rest[0]].exp()
            else:
                env[p[0]] = getattr(torch, op)(env[rest[0]], env[rest[1]])
        else:
            tensor = env.get(p[2]) if len(p) > 2 and p[0] in WRITES_TENSOR else None
            run_write(p[0], env[p[1]], tensor, float(p[2]) if tensor is None and len(p) > 2 else 0)
    torch.set_grad_enabled(True)
    return env


def squares(tensors):
    total = None
    for t in tensors:
        s = (t * t).sum()
        total = s if total is None else total + s
    return total


def numbers(grads):
    out = []
    for g, n in zip(grads, (6, 3)):
        out += [float("nan")] * n if g is None else g.detach().flatten().tolist()
    return out


def answer(program):
    """(error words or "", first derivative, second derivative)"""
    try:
        env = run(program)
        loss = squares([v for n, v in env.items() if n not in "xw" and v.requires_grad])
        if loss is None or not loss.requires_grad:
            return None
        leaves = [env["x"], env["w"]]
        grads = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        first = numbers(grads)
        second = [float("nan")] * 9
        used = [g for g in grads if g is not None and g.requires_grad]
        if used:
            second = numbers(torch.autograd.grad(squares(used), leaves, allow_unused=True))
        return "", first, second
    except RuntimeError as e:
        return str(e)[:72].split("\n")[0], [], []


def random_program(rng):
    names = iter("abcdefghij")
    shapes = {"x": (2, 3), "w": (3,), "k": (3,), "z": (2, 3)}
    out = []
    env = start()
    first = next(names)
    out.append("%s = %s" % (first, rng.choice(["mul x w", "add x k", "muls x 2", "mul x x"])))
    shapes[first] = (2, 3)
    pool = [first, "z"] if rng.random() < 0.3 else [first]
    del env
    no_grad = False
    for _ in range(rng.randint(2, 5)):
        if rng.random() < 0.06:
            no_grad = not no_grad
            out.append("ng" if no_grad else "g")
        a = rng.choice(pool)
        if rng.random() < 0.5 and len(pool) < 6:
            made = view_statement(rng, a, shapes[a])
            if made is None:
                continue
            op, shape = made
            name = next(names)
            out.append("%s = %s" % (name, op))
            shapes[name] = shape
            pool.append(name)
        elif rng.random() < 0.12:
            name = next(names)
            out.append("%s = mul %s %s" % (name, a, a))
            shapes[name] = shapes[a]
            pool.append(name)
        elif rng.random() < 0.5:
            op = rng.choice(WRITES_NUMBER)
            number = {"muls_": " 1.5", "adds_": " 0.5", "fill_": " 2"}.get(op, "")
            out.append(op + " " + a + number)
        else:
            fits = [b for b in list(pool) + ["w", "k"] if broadcasts(shapes[b], shapes[a])]
            if fits:
                out.append("%s %s %s" % (rng.choice(WRITES_TENSOR), a, rng.choice(fits)))
    if no_grad:
        out.append("g")
    return " ; ".join(out)


def broadcasts(b, a):
    return len(b) <= len(a) and all(i in (1, j) for i, j in zip(b[::-1], a[::-1]))


def view_statement(rng, a, shape):
    """(statement without the name, shape)"""
    n = 1
    for s in shape:
        n *= s
    op = rng.choice(VIEWS)
    if op == "view":
        to = rng.choice([(n,), (n, 1)] + ([(3, 2)] if n == 6 else []))
        return "view %s %s" % (a, " ".join(map(str, to))), to
    if op == "sel" and len(shape) >= 1:
        d = rng.randrange(len(shape))
        return "sel %s %d %d" % (a, d, rng.randrange(shape[d])), shape[:d] + shape[d + 1:]
    if op == "sl" and len(shape) >= 1 and max(shape) > 1:
        d = max(range(len(shape)), key=lambda i: shape[i])
        return "sl %s %d %d %d" % (a, d, 1, shape[d] - 1), shape[:d] + (shape[d] - 1,) + shape[d + 1:]
    if op == "t" and len(shape) == 2:
        return "t %s" % a, shape[::-1]
    if op == "unsq":
        return "unsq %s 0" % a, (1,) + shape
    if op == "diag" and len(shape) == 2:
        return "diag %s" % a, (min(shape),)
    if op in ("ub", "sp") and len(shape) >= 1 and rng.random() < 0.4:
        i = rng.randrange(shape[0])
        return "%s %s %d" % (op, a, i), shape[1:] if op == "ub" else (1,) + shape[1:]
    if op == "as" and n == 6:
        return "as %s %d" % (a, rng.randrange(3)), (2, 2)
    if op == "det" and rng.random() < 0.3:
        return "det %s" % a, shape
    return None


FIXED = """
muls_ x 2
a = view x 6 ; muls_ a 2
a = sel x 0 1 ; exp_ a
a = muls x 2 ; b = view a 3 2 ; mul_ b b
a = muls x 2 ; b = sel a 0 0 ; mul_ b w
a = muls x 2 ; b = sel a 0 0 ; copy_ b w
a = muls x 2 ; b = sel a 0 0 ; exp_ b ; c = sel a 0 1 ; sig_ c ; mul_ b w
a = muls x 2 ; b = sel a 0 0 ; c = sl b 0 1 2 ; mul_ c c
a = sel z 0 1 ; copy_ a w
a = sel z 0 1 ; copy_ a w ; b = mul z z
a = sel z 0 1 ; copy_ a w ; exp_ z ; muls_ a 2
a = muls x 2 ; b = t a ; c = sel b 0 1 ; exp_ c ; mul_ b b
a = muls x 2 ; b = t a ; muls_ a 3 ; c = mul b b
a = muls x 2 ; b = ub a 0 ; muls_ b 2
a = muls x 2 ; b = ub a 0 ; muls_ a 2
a = muls x 2 ; b = sp a 1 ; add_ b w
a = muls x 2 ; ng ; b = view a 6 ; g ; muls_ b 2
a = muls x 2 ; ng ; b = view a 6 ; muls_ b 2 ; g
a = muls x 2 ; ng ; b = view a 6 ; g ; c = mul b b
ng ; a = view z 6 ; g ; muls_ a 2
ng ; a = view z 2 3 ; g ; add_ a w
a = exp x ; b = view a 6 ; muls_ b 2
a = exp x ; b = det a ; muls_ b 2
a = muls x 2 ; b = det a ; muls_ b 2
a = muls x 2 ; b = det a ; muls_ b 2 ; c = mul a a
a = muls x 2 ; b = as a 1 ; exp_ b ; c = mul a a
a = muls x 2 ; b = diag a ; exp_ b ; mul_ a w
a = muls x 2 ; b = view a 6 ; zero_ b
a = muls x 2 ; b = sel a 1 0 ; fill_ b 3
a = muls x 2 ; b = unsq a 0 ; sig_ a ; exp_ b
a = mul x w ; muls_ a 2 ; exp_ a ; div_ a w
a = mul x w ; add_ a a
a = mul x w ; mul_ a a
z = det x ; muls_ z 2 ; a = mul x x
"""


def c_numbers(values):
    return "{%s}" % ", ".join("NAN" if v != v else repr(v) for v in values) if values else "{0}"


def main():
    rng = random.Random(20261115)
    programs = [p for p in FIXED.strip().split("\n")]
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 190
    rows, errors, seen = [], 0, set()
    while len(rows) < wanted:
        program = programs.pop(0) if programs else random_program(rng)
        fixed = len(rows) < 34
        if program in seen:
            continue
        seen.add(program)
        got = answer(program)
        if got is None or any(abs(v) > 1e4 for v in got[1] + got[2]):
            continue
        if not fixed and (got[0] and errors > wanted // 4 or "_" not in program):
            continue
        errors += bool(got[0])
        rows.append((program,) + got)
    print("/* SPDX-License-Identifier: Apache-2.0\n *\n * V(program, error, first, second): made by "
          "record_views.py with torch %s; see there. */" % torch.__version__.split("+")[0])
    for program, error, first, second in rows:
        print('V("%s",\n  "%s",\n  %s,\n  %s)' % (program, error.replace('"', '\\"'),
                                                  c_numbers(first), c_numbers(second)))


if __name__ == "__main__":
    main()
