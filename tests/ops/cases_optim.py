# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_optim.def: one step of each method against the same step in NumPy."""
import numpy as np
from opcases import Bad, Case, cases

# Steps on float64 arrays; each gives the new (parameter, state...).


def sgd(p, g, buf, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step):
    g = (-g if maximize else g) + weight_decay * p
    if momentum != 0:
        buf = g if is_first_step else momentum * buf + (1 - dampening) * g
        g = g + momentum * buf if nesterov else buf
    return p - lr * g, buf


def adam(p, g, m, v, top, *, step, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
         decoupled):
    g = -g if maximize else g
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    top = np.maximum(top, v) if amsgrad else top
    root = np.sqrt(top if amsgrad else v) / np.sqrt(1 - beta2 ** step) + eps
    return p - lr / (1 - beta1 ** step) * m / root, m, v, top


def rmsprop(p, g, square, buf, mean, *, lr, alpha, eps, weight_decay, momentum, centered, maximize):
    g = (-g if maximize else g) + weight_decay * p
    square = alpha * square + (1 - alpha) * g * g
    if centered:
        mean = mean + (1 - alpha) * (g - mean)
        root = np.sqrt(square - mean * mean) + eps
    else:
        root = np.sqrt(square) + eps
    if momentum > 0:
        buf = momentum * buf + g / root
        return p - lr * buf, square, buf, mean
    return p - lr * g / root, square, buf, mean


def adagrad(p, g, total, *, step, lr, lr_decay, weight_decay, eps, maximize):
    g = (-g if maximize else g) + weight_decay * p
    total = total + g * g
    return p - lr / (1 + (step - 1) * lr_decay) * g / (np.sqrt(total) + eps), total


def decayed(p, g, options):
    """The parameter and the gradient after weight decay."""
    g = -g if options["maximize"] else g
    decay = options.get("weight_decay", 0)
    if options.get("decoupled_weight_decay"):
        return p * (1 - options["lr"] * decay), g
    return p, g + decay * p


def adadelta(p, g, square, moved, *, rho, eps, lr, **options):
    p, g = decayed(p, g, options)
    square = rho * square + (1 - rho) * g * g
    delta = np.sqrt(moved + eps) / np.sqrt(square + eps) * g
    return p - lr * delta, square, rho * moved + (1 - rho) * delta * delta


def adamax(p, g, m, u, *, step, beta1, beta2, eps, **options):
    p, g = decayed(p, g, options)
    m = beta1 * m + (1 - beta1) * g
    u = np.maximum(beta2 * u, np.abs(g) + eps)
    return p - options["lr"] / (1 - beta1 ** step) * m / u, m, u


def nadam(p, g, m, v, *, step, beta1, beta2, eps, momentum_decay, mu_product, **options):
    p, g = decayed(p, g, options)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (step, step + 1))
    mean = following * m / (1 - mu_product * following) + (1 - mu) * g / (1 - mu_product)
    return p - options["lr"] * mean / (np.sqrt(v / (1 - beta2 ** step)) + eps), m, v


def radam(p, g, m, v, *, step, beta1, beta2, eps, **options):
    p, g = decayed(p, g, options)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    move = options["lr"] * m / (1 - beta1 ** step)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)
    if length > 5:
        factor = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        move = move * np.sqrt(factor) * np.sqrt(1 - beta2 ** step) / (np.sqrt(v) + eps)
    return p - move, m, v


def asgd(p, g, ax, *, lambd, eta, mu, **options):
    _, g = decayed(p, g, options)
    p = p * (1 - lambd * eta) - eta * g
    return p, p if mu == 1 else ax + mu * (p - ax)


def rprop(p, g, prev, size, *, etaminus, etaplus, step_size_min, step_size_max, maximize):
    g = -g if maximize else g
    turned = np.sign(g * prev)
    factor = np.where(turned > 0, etaplus, np.where(turned < 0, etaminus, 1.0))
    size = np.clip(size * factor, step_size_min, step_size_max)
    g = np.where(turned < 0, 0.0, g)
    return p - np.sign(g) * size, g, size


def stepped(function, extra):
    """A check that compares every written list with `function` on the arrays before."""

    def check(got, tensors, arrays):
        del got
        lists = [part for part in arrays if isinstance(part, list)]
        after = [part for part in tensors if isinstance(part, list)]
        for k in range(len(lists[0])):
            old = [np.asarray(part[k], np.float64) if part else None for part in lists]
            new = function(*old, **extra)
            written = [0] + list(range(2, len(lists)))  # gradients stay
            for i, expected in zip(written, new):
                if lists[i]:
                    close = dict(rtol=1e-12, atol=1e-13)
                    if lists[0][k].dtype == np.float32:
                        close = dict(rtol=2e-5, atol=2e-6)
                    np.testing.assert_allclose(after[i][k].numpy(), expected, **close)

    return check


def lists_of(g, names):
    """Three parameters: a matrix, an empty one, a 0-d one. "+" marks numbers that are positive."""
    shapes = ((3, 4), (0, 2), ())
    return [[g.positive(s) if name == "+" else g.array(s) for s in shapes] if name else []
            for name in names]


DISTINCT = ("contiguous", "transposed", "sliced", "mixed")  # what is written must not repeat


def combinations(*choices):
    """One setting at a time, and all of them."""
    base = {key: values[0] for key, values in choices}
    yield base
    for key, values in choices:
        for value in values[1:]:
            yield {**base, key: value}
    yield {key: values[-1] for key, values in choices}


@cases("_fused_sgd_")
def fused_sgd(g):
    for options in combinations(("weight_decay", (0.0, 0.1)), ("momentum", (0.0, 0.9)),
                                ("lr", (0.1,)), ("dampening", (0.0, 0.3)),
                                ("maximize", (False, True)), ("is_first_step", (False, True))):
        for nesterov in (False, True):
            if nesterov and (options["momentum"] == 0 or options["dampening"] != 0):
                continue
            extra = {**options, "nesterov": nesterov}
            lists = lists_of(g, ("x", "x", "x" if extra["momentum"] else ""))
            yield Case(tuple(lists), extra, check=stepped(sgd, extra), grad=False, layouts=DISTINCT)
    some = dict(weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False,
                maximize=False, is_first_step=True)
    yield Bad(([g.array((3,))], [g.array((4,))], []), "RuntimeError", "grads must be like", some)
    yield Bad(([g.array((3,))], [], []), "RuntimeError", "grads must have 1 tensors, got 0", some)
    yield Bad(([g.other("int64", (3,))], [g.other("int64", (3,))], []), "NotImplementedError",
              "'Long'", some)
    yield Bad(([g.array((3,))], [g.array((3,))], []), "RuntimeError",
              "momentum_buffer_list must have 1 tensors, got 0", {**some, "momentum": 0.9})


@cases("_fused_adam_", "_fused_adamw_")
def fused_adam(g):
    decoupled = g.op == "_fused_adamw_"
    for options in combinations(("lr", (0.1,)), ("beta1", (0.9, 0.5)), ("beta2", (0.999, 0.3)),
                                ("weight_decay", (0.0, 0.1)), ("eps", (1e-8, 0.1)),
                                ("amsgrad", (False, True)), ("maximize", (False, True))):
        for step in (1, 3):
            lists = lists_of(g, ("x", "x", "x", "+", "+" if options["amsgrad"] else ""))
            extra = {**options, "step": step, "decoupled": decoupled}
            yield Case(tuple(lists) + (step,), options, check=stepped(adam, extra), grad=False,
                       layouts=DISTINCT)
    one = [g.array((3,))]
    some = dict(lr=0.1, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8, amsgrad=False,
                maximize=False)
    yield Bad((one, one, one, one, [], 0), "ValueError", "step counts from 1, got 0", some)
    yield Bad((one, one, [], one, [], 1), "RuntimeError", "exp_avgs must have 1 tensors", some)


@cases("_fused_rmsprop_")
def fused_rmsprop(g):
    for options in combinations(("lr", (0.1,)), ("alpha", (0.99, 0.5)), ("eps", (1e-8, 0.1)),
                                ("weight_decay", (0.0, 0.1)), ("momentum", (0.0, 0.9)),
                                ("centered", (False, True)), ("maximize", (False, True))):
        lists = lists_of(g, ("x", "x", "+", "x" if options["momentum"] else "",
                             "x" if options["centered"] else ""))
        if options["centered"]:  # keeps square - mean^2 positive, as in a real run
            lists[2] = [g.cast(np.asarray(m, np.float64) ** 2 + 1.0) for m in lists[4]]
        yield Case(tuple(lists), options, check=stepped(rmsprop, options), grad=False,
                   layouts=DISTINCT)
    one = [g.array((3,))]
    yield Bad((one, one, [], [], []), "RuntimeError", "square_avgs must have 1 tensors",
              dict(lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False,
                   maximize=False))


@cases("_fused_adagrad_")
def fused_adagrad(g):
    for options in combinations(("lr", (0.1,)), ("lr_decay", (0.0, 0.2)),
                                ("weight_decay", (0.0, 0.1)), ("eps", (1e-10, 0.1)),
                                ("maximize", (False, True))):
        for step in (1, 4):
            lists = lists_of(g, ("x", "x", "+"))
            yield Case(tuple(lists) + (step,), options, check=stepped(adagrad, {**options,
                                                                                "step": step}),
                       grad=False, layouts=DISTINCT)
    one = [g.array((3,))]
    yield Bad((one, one, one, -1), "ValueError", "step counts from 1, got -1",
              dict(lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False))


RATES = (("lr", (0.1,)), ("weight_decay", (0.0, 0.1)), ("maximize", (False, True)))
AVERAGES = (("beta1", (0.9, 0.5)), ("beta2", (0.999, 0.8)), ("eps", (1e-8, 0.1)), *RATES)
DECOUPLED = ("decoupled_weight_decay", (False, True))


def step_cases(g, function, names, options, steps=(None,)):
    """Cases of one method: each choice of options, at each count of steps."""
    for chosen in combinations(*options):
        for step in steps:
            counted = {} if step is None else {"step": step}
            yield Case((*lists_of(g, names), *counted.values()), chosen,
                       check=stepped(function, {**chosen, **counted}), grad=False, layouts=DISTINCT)


def not_counted(g, options):
    one = [g.array((3,))]
    some = {key: values[0] for key, values in options}
    return Bad((one, one, one, one, 0), "ValueError", "step counts from 1, got 0", some)


@cases("_fused_adadelta_")
def fused_adadelta(g):
    yield from step_cases(g, adadelta, "xx++", (("rho", (0.9, 0.5)), ("eps", (1e-6, 0.1)), *RATES))


@cases("_fused_adamax_")
def fused_adamax(g):
    yield from step_cases(g, adamax, "xxx+", AVERAGES, (1, 3))
    yield not_counted(g, AVERAGES)


@cases("_fused_nadam_")
def fused_nadam(g):
    options = (*AVERAGES, DECOUPLED, ("momentum_decay", (4e-3, 0.2)), ("mu_product", (0.45, 0.2)))
    yield from step_cases(g, nadam, "xxx+", options, (1, 3))
    yield not_counted(g, options)


@cases("_fused_radam_")
def fused_radam(g):
    options = (*AVERAGES, DECOUPLED)
    yield from step_cases(g, radam, "xxx+", options, (1, 3, 12))
    yield not_counted(g, options)


@cases("_fused_asgd_")
def fused_asgd(g):
    yield from step_cases(g, asgd, "xxx", (("lambd", (1e-4, 0.2)), ("eta", (0.1, 0.3)), ("mu", (1.0, 0.25)),
                                           *RATES[1:]))


@cases("_fused_rprop_")
def fused_rprop(g):
    yield from step_cases(g, rprop, "xxx+", (("etaminus", (0.5, 0.2)), ("etaplus", (1.2, 2.0)),
                                             ("step_size_min", (1e-6, 0.4)), ("step_size_max", (50.0, 0.6)),
                                             RATES[2]))
