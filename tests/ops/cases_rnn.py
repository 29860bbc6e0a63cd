# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_rnn.def: references are plain loops over steps."""
import numpy as np
from opcases import Bad, Case, Fixed, cases

LAYERS = {"0-d": "takes sequences"}
SOME = ("contiguous", "mixed")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, h, c, w_ih, w_hh, b_ih=0.0, b_hh=0.0):
    """(h, c) after a step; c is None but for an LSTM."""
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if mode == "lstm":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if mode == "gru":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return n + z * (h - n), None
    return (np.tanh(a + b) if mode == "rnn_tanh" else np.maximum(a + b, 0)), None


def layer(mode, x, sizes, h, c, weights, reverse, project=None):
    """x: [rows, I]; sizes: rows of each step. Gives (out, h, c)."""
    h, c = h.copy(), None if c is None else c.copy()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros((len(x), h.shape[1]), x.dtype)
    for at in range(len(sizes))[::-1] if reverse else range(len(sizes)):
        rows, n = slice(starts[at], starts[at + 1]), sizes[at]
        new, cell = step(mode, x[rows], h[:n], None if c is None else c[:n], *weights)
        if c is not None:
            c[:n] = cell
        out[rows] = h[:n] = new if project is None else new @ project.T
    return out, h, c


def network(mode, x, sizes, states, params, has_biases, num_layers, bidirectional):
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    hs, cs = [], []
    for at in range(num_layers):
        outs = []
        for side in range(directions):
            d = at * directions + side
            mine = params[d * per:(d + 1) * per]
            count = 4 if has_biases else 2
            project = mine[count] if per > count else None
            out, h, c = layer(mode, x, sizes, states[0][d], states[1][d] if mode == "lstm" else None,
                              mine[:count], side == 1, project)
            outs.append(out)
            hs.append(h)
            cs.append(c)
        x = np.concatenate(outs, -1)
    return x, np.stack(hs), np.stack(cs) if mode == "lstm" else None


def reference(mode):
    def run(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        x = np.swapaxes(x, 0, 1) if batch_first else x
        states = hx if mode == "lstm" else [hx]
        out, h, c = network(mode, x.reshape(-1, x.shape[-1]), [x.shape[1]] * x.shape[0], states, params,
                            has_biases, num_layers, bidirectional)
        out = out.reshape(x.shape[:2] + out.shape[-1:])
        out = np.swapaxes(out, 0, 1) if batch_first else out
        return (out, h, c) if mode == "lstm" else (out, h)
    return run


def packed_reference(mode):
    def run(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        states = hx if mode == "lstm" else [hx]
        found = network(mode, data, [int(n) for n in batch_sizes], states, params, has_biases, num_layers,
                        bidirectional)
        return found if mode == "lstm" else found[:2]
    return run


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def params_of(g, mode, width, hidden, layers=1, directions=1, biases=True, project=0):
    made = []
    gates, state = GATES[mode] * hidden, project or hidden
    for at in range(layers):
        below = width if at == 0 else state * directions
        for _ in range(directions):
            made += [g.array((gates, below), -1, 1), g.array((gates, state), -1, 1)]
            made += [g.array((gates,), -1, 1), g.array((gates,), -1, 1)] if biases else []
            made += [g.array((project, hidden), -1, 1)] if project else []
    return made


def states_of(g, mode, count, batch, hidden, project=0):
    h = g.array((count, batch, project or hidden))
    return [h, g.array((count, batch, hidden))] if mode == "lstm" else h


@cases("lstm", "gru", "rnn_tanh", "rnn_relu", skip={**LAYERS, "extremes": {
    "large": "sums of products overflow in one order and not in another"}})
def networks(g):
    mode, make = g.op, reference(g.op)
    yield Case((g.array((3, 2, 3)), states_of(g, mode, 1, 2, 2), params_of(g, mode, 3, 2), True, 1, 0.0,
                True, False, False), {}, make)
    yield Case((g.array((2, 3, 2)), states_of(g, mode, 4, 2, 3), params_of(g, mode, 2, 3, 2, 2, False), False,
                2, 0.5, False, True, True), {}, make, layouts=SOME)
    yield Case((g.array((2, 0, 3)), states_of(g, mode, 1, 0, 2), params_of(g, mode, 3, 2), True, 1, 0.0,
                True, False, False), {}, make, layouts=SOME)
    if mode == "lstm":
        yield Case((g.array((2, 2, 3)), states_of(g, mode, 2, 2, 3, 2),
                    params_of(g, mode, 3, 3, 1, 2, True, 2), True, 1, 0.0, True, True, False), {}, make,
                   layouts=SOME, double=True)
        yield Bad((g.array((2, 2, 3)), [g.array((1, 2, 2))], params_of(g, mode, 3, 2), True, 1, 0.0, True,
                   False, False), "RuntimeError", "lstm expects two hidden states")
    yield Bad((g.array((2, 2, 3)), states_of(g, mode, 1, 2, 2), params_of(g, mode, 3, 2)[:3], True, 1, 0.0,
               True, False, False), "RuntimeError", "parameters do not make")
    yield Bad((g.array((2, 2, 3)), states_of(g, mode, 1, 3, 2), params_of(g, mode, 3, 2), True, 1, 0.0, True,
               False, False), "RuntimeError", "Expected hidden size [2, 2], got [3, 2]")
    yield Bad((g.array((2, 2, 4)), states_of(g, mode, 1, 2, 2), params_of(g, mode, 3, 2), True, 1, 0.0, True,
               False, False), "RuntimeError", "expected weight_ih of size")


@cases("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data", skip={**LAYERS, "empty": "sequences have steps",
       "extremes": {"large": "sums of products overflow in one order and not in another"}})
def packed_networks(g):
    mode = g.op.split(".")[0]
    make, sizes = packed_reference(mode), Fixed(np.array([3, 2, 2, 1]))
    yield Case((g.array((8, 3)), sizes, states_of(g, mode, 2, 3, 2), params_of(g, mode, 3, 2, 1, 2), True, 1,
                0.0, True, True), {}, make, layouts=SOME)
    if mode == "lstm":
        yield Case((g.array((8, 3)), sizes, states_of(g, mode, 2, 3, 3, 2),
                    params_of(g, mode, 3, 3, 1, 2, False, 2), False, 1, 0.0, True, True), {}, make, layouts=SOME)
    yield Bad((g.array((7, 3)), sizes, states_of(g, mode, 1, 3, 2), params_of(g, mode, 3, 2), True, 1, 0.0,
               True, False), "RuntimeError", "packed sequences of 8 rows need an input of as many")
    yield Bad((g.array((8, 3)), Fixed(np.array([1, 3, 4])), states_of(g, mode, 1, 1, 2),
               params_of(g, mode, 3, 2), True, 1, 0.0, True, False), "RuntimeError", "must be positive and not grow")


@cases("mkldnn_rnn_layer", skip={**LAYERS, "empty": "lstm has one", "extremes": {
    "large": "sums of products overflow in one order and not in another"}})
def layers(g):
    def check(mode, x, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse):
        def run(got, args, kwargs):
            weights = (w_ih, w_hh, b_ih, b_hh)
            out, h, c = layer(mode, x.reshape(-1, x.shape[-1]), [x.shape[1]] * x.shape[0], hx, cx, weights, reverse)
            tolerance = 1e-5 if g.dtype == "float32" else 1e-12
            for mine, want in zip(got, (out.reshape(x.shape[:2] + (-1,)), h, c)):
                if want is not None:
                    assert np.allclose(mine.numpy(), want, tolerance, tolerance)
        return run

    for number, mode in enumerate(("rnn_relu", "rnn_tanh", "lstm", "gru")):
        args = (g.array((3, 2, 3)), *params_of(g, mode, 3, 2), g.array((2, 2)),
                g.array((2, 2)) if mode == "lstm" else None)
        for reverse in (False, True):
            yield Case((*args, reverse, [], number), {}, None, check=check(mode, *args, reverse), layouts=SOME,
                       grad=False)
    yield Bad((g.array((3, 2, 3)), *params_of(g, "lstm", 3, 2), g.array((2, 2)), None, False, [], 2),
              "RuntimeError", "an LSTM needs cx")
    yield Bad((g.array((3, 2, 3)), *params_of(g, "lstm", 3, 2), g.array((2, 2)), None, False, [], 4),
              "ValueError", "mode 4 is none of 0 to 3")


@cases("mkldnn_rnn_layer_backward", skip={**LAYERS, "empty": "lstm has one", "extremes": {
    "large": "sums of products overflow in one order and not in another"}})
def layers_backward(g):
    """relu and its derivative are simple enough for a reference of their own; gradients of lstm and the others
    are compared with differences."""
    def run(x, w_ih, w_hh, out, gates, states, rest, grad, grad_hy, grad_cy, reverse, sizes, mode):
        grads, later = np.zeros_like(gates), grad_hy.copy()
        for at in range(x.shape[0])[::-1]:
            rows = slice(at * x.shape[1], (at + 1) * x.shape[1])
            grads[rows] = np.where(out[at] > 0, grad[at] + later, 0)
            later = grads[rows] @ w_hh
        flat = x.reshape(-1, x.shape[-1])
        return ((grads @ w_ih).reshape(x.shape), grads.T @ flat, grads.T @ states, grads.sum(0), grads.sum(0), later,
                None)

    yield Case((g.array((3, 2, 3)), g.array((2, 3)), g.array((2, 2)), g.array((3, 2, 2)), g.array((6, 2)),
                g.array((6, 2)), None, g.array((3, 2, 2)), g.array((2, 2)), None, False, [], 0), {}, run, layouts=SOME,
               grad=False)


@cases("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", skip={"0-d": "takes rows", "extremes": {
    "large": "sums of products overflow in one order and not in another"}})
def cells(g):
    mode = g.op[:-5]

    def run(x, hx, *weights):
        h, c = hx if mode == "lstm" else (hx, None)
        h, c = step(mode, x, h, c, *[0.0 if w is None else w for w in weights])
        return (h, c) if mode == "lstm" else h

    for batch in (2, 0):
        for biases in (True, False):
            state = [g.array((batch, 2)), g.array((batch, 2))] if mode == "lstm" else g.array((batch, 2))
            yield Case((g.array((batch, 3)), state, *params_of(g, mode, 3, 2, biases=biases)), {}, run,
                       double=batch > 0 and mode != "rnn_relu")
    state = [g.array((2, 2)), g.array((2, 2))] if mode == "lstm" else g.array((2, 2))
    yield Bad((g.array((2, 4)), state, *params_of(g, mode, 3, 2)), "RuntimeError",
              "input has inconsistent input_size: got 4 expected 3")


# ---- sequences of several lengths ----

@cases("_pack_padded_sequence", skip={**LAYERS, "empty": "refused"})
def pack(g):
    def run(x, lengths, batch_first):
        x = np.swapaxes(x, 0, 1) if batch_first else x
        sizes = [int((lengths > at).sum()) for at in range(int(lengths[0]))]
        return np.concatenate([x[at, :n] for at, n in enumerate(sizes)]), np.array(sizes)

    lengths = Fixed(np.array([4, 2, 1]))
    yield Case((g.array((4, 3, 2)), lengths, False), {}, run, double=True)
    yield Case((g.array((3, 5)), lengths, True), {}, run)
    yield Bad((g.array((0, 3)), lengths, False), "RuntimeError", "Cannot pack empty tensors.")
    yield Bad((g.array((4, 2)), lengths, False), "RuntimeError", "but got 3 (batch_size=2)")
    yield Bad((g.array((4, 3)), Fixed(np.array([1, 2, 3])), False), "RuntimeError", "sorted in decreasing order")
    yield Bad((g.array((4, 3)), Fixed(np.array([2, 1, 0])), False), "RuntimeError", "has to be greater than 0")


@cases("_pad_packed_sequence", skip={**LAYERS, "empty": "refused"})
def unpack(g):
    def run(data, sizes, batch_first, value, total):
        lengths = np.array([int((sizes > b).sum()) for b in range(int(sizes[0]))])
        total = total if total > 0 else len(sizes)
        out = np.full((total, int(sizes[0])) + data.shape[1:], float(value), data.dtype)
        row = 0
        for at, n in enumerate(sizes):
            out[at, :n] = data[row:row + n]
            row += n
        return np.swapaxes(out, 0, 1) if batch_first else out, lengths

    sizes = Fixed(np.array([3, 2, 1, 1]))
    yield Case((g.array((7, 2)), sizes, False, 1.5, 0), {}, run, double=True)
    yield Case((g.array((7,)), sizes, True, 0, 6), {}, run)
    yield Bad((g.array((7,)), sizes, True, 0, 3), "RuntimeError", "total_length=3 and max sequence length being 4")
    yield Bad((g.array((6,)), sizes, True, 0, 0), "RuntimeError", "do not fit the data")


@cases("pad_sequence", skip={"0-d": "takes sequences"})
def pad_sequence(g):
    def run(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
        longest = max(len(s) for s in sequences)
        out = np.full((len(sequences), longest) + sequences[0].shape[1:], padding_value, sequences[0].dtype)
        for row, s in zip(out, sequences):
            row[longest - len(s):] = s if padding_side == "left" else row[longest - len(s):]
            row[:len(s)] = s if padding_side == "right" else row[:len(s)]
        return out if batch_first else np.swapaxes(out, 0, 1)

    yield Case(([g.array((2, 3)), g.array((4, 3)), g.array((1, 3))],), {}, run, double=True)
    yield Case(([g.array((2,)), g.array((3,))], True, 2.5, "left"), {}, run)
    yield Case(([g.array((0, 2)), g.array((1, 2))],), {}, run)
    yield Bad(([g.array((2, 3)), g.array((2, 2))],), "RuntimeError", "must agree in all sizes but the first")
