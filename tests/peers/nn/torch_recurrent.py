# SPDX-License-Identifier: Apache-2.0
"""Recurrent modules and packed sequences against torch's: outputs, gradients, state dicts, reprs, errors, first
values from a seed's order, rows of a profile: torch_recurrent.py [-v] [NAME ...]
"""
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import CASES, case, main, raised  # noqa: E402

KINDS = ("LSTM", "GRU", "RNN")
LENGTHS = [2, 5, 3]


def flat(result):
    """Tensors of nested outputs."""
    if isinstance(result, tuple):
        return tuple(t for part in result for t in flat(part))
    return (result,)


def module_case(kind, options):
    def run(t):
        module = t.fill(getattr(t.nn, kind)(3, 4, **options))
        return t.backward(flat(module(t.x(5, 2, 3))), list(module.parameters()))
    return run


def packed_case(kind, options):
    def run(t):
        rnn, module = t.nn.utils.rnn, t.fill(getattr(t.nn, kind)(3, 4, **options))
        first = options.get("batch_first", False)
        x = t.x(3, 5, 3) if first else t.x(5, 3, 3)
        packed = rnn.pack_padded_sequence(x, LENGTHS, batch_first=first, enforce_sorted=False)
        output, state = module(packed)
        padded, lengths = rnn.pad_packed_sequence(output, batch_first=first, padding_value=0.5)
        found = t.backward((padded, *flat(state)), list(module.parameters()))
        return [*found, lengths, output.batch_sizes, output.sorted_indices, output.unsorted_indices]
    return run


def given_state(kind):
    def run(t):
        module = t.fill(getattr(t.nn, kind)(3, 4, 2, bidirectional=True))
        states = [t.x(4, 2, 4) for _ in range(2 if kind == "LSTM" else 1)]
        return t.backward(flat(module(t.x(5, 2, 3), tuple(states) if kind == "LSTM" else states[0])),
                          list(module.parameters()))
    return run


def unbatched(kind):
    def run(t):
        module = t.fill(getattr(t.nn, kind)(3, 4))
        return t.backward(flat(module(t.x(5, 3))), list(module.parameters()))
    return run


def cell_case(kind, options, shape):
    def run(t):
        module = t.fill(getattr(t.nn, kind)(3, 4, **options))
        first = module(t.x(*shape, 3))
        return t.backward(flat((first, module(t.x(*shape, 3), first))), list(module.parameters()))
    return run


OPTIONS = ({}, {"num_layers": 2}, {"bias": False}, {"batch_first": True}, {"bidirectional": True},
           {"num_layers": 2, "bidirectional": True, "batch_first": True})
for kind, options in itertools.product(KINDS, OPTIONS):
    CASES[f"{kind} {options}"] = module_case(kind, options)
    CASES[f"packed {kind} {options}"] = packed_case(kind, options)
for options in ({"proj_size": 2}, {"proj_size": 2, "num_layers": 2, "bidirectional": True}):
    CASES[f"LSTM {options}"] = module_case("LSTM", options)
    CASES[f"packed LSTM {options}"] = packed_case("LSTM", options)
for nonlinearity in ("tanh", "relu"):
    CASES[f"RNN {nonlinearity}"] = module_case("RNN", {"nonlinearity": nonlinearity})
    CASES[f"RNNCell {nonlinearity}"] = cell_case("RNNCell", {"nonlinearity": nonlinearity}, (2,))
for kind in KINDS:
    CASES[f"given state {kind}"] = given_state(kind)
    CASES[f"unbatched {kind}"] = unbatched(kind)
for kind in ("LSTMCell", "GRUCell", "RNNCell"):
    for options in ({}, {"bias": False}):
        CASES[f"{kind} {options}"] = cell_case(kind, options, (2,))
    CASES[f"unbatched {kind}"] = cell_case(kind, {}, ())


@case
def sequences(t):
    rnn, torch = t.nn.utils.rnn, t.torch
    parts = [t.x(2, 3), t.x(4, 3), t.x(1, 3)]
    padded = rnn.pad_sequence(parts, batch_first=True, padding_value=2.0)
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    double = packed.double()
    return t.backward((padded, rnn.pad_sequence(parts, padding_side="left"), packed.data)) + [
        packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices, double.data.detach(),
        [s.detach() for s in rnn.unpack_sequence(packed)],
        [s.detach() for s in rnn.unpad_sequence(padded, torch.tensor([2, 4, 1]), batch_first=True)],
        rnn.invert_permutation(torch.tensor([2, 0, 1])), rnn.pad_packed_sequence(packed, total_length=6)[0].detach(),
        packed._fields]


@case
def printed(t):
    nn = t.nn
    made = [nn.LSTM(3, 4), nn.LSTM(3, 4, 2, False, True, 0.5, True, 2), nn.GRU(3, 4, bias=False),
            nn.RNN(3, 4, 2, "relu", dropout=0.25), nn.LSTMCell(3, 4), nn.GRUCell(3, 4, bias=False),
            nn.RNNCell(3, 4, nonlinearity="relu")]
    return [[repr(m), [(k, list(v.shape)) for k, v in m.state_dict().items()], [n for n, _ in m.named_parameters()],
             list(m.__constants__)] for m in made]


@case
def weights_across(t):
    """The same seeds for every parameter in order: each has as many draws as elements."""
    made = t.nn.LSTM(3, 4, 2, bidirectional=True)
    return [made._flat_weights_names, [[list(w.shape) for w in part] for part in made.all_weights],
            [bool((p.abs() <= 0.5).all()) for p in made.parameters()]]


@case
def errors(t):
    nn, torch = t.nn, t.torch
    zeros, rnn = torch.zeros, nn.utils.rnn
    lstm, gru = nn.LSTM(3, 4), nn.GRU(3, 4)
    calls = [
        lambda: lstm(zeros(2, 2, 5)), lambda: lstm(zeros(2, 2, 3, 1)), lambda: gru(zeros(2, 2, 3), zeros(1, 3, 4)),
        lambda: lstm(zeros(2, 2, 3), (zeros(1, 3, 4), zeros(1, 3, 4))), lambda: gru(zeros(2, 3), zeros(1, 3, 4)),
        lambda: lstm(zeros(2, 3), (zeros(1, 3, 4), zeros(1, 3, 4))), lambda: nn.GRU(3, 4, proj_size=2),
        lambda: nn.LSTM(3, 4, proj_size=4), lambda: nn.LSTM(3, 4, proj_size=-1), lambda: nn.LSTM(3, 4, dropout=2),
        lambda: nn.LSTM(3, 0), lambda: nn.LSTM(0, 3), lambda: nn.LSTM(3, 4, 0), lambda: nn.LSTM(3, 4.0),
        lambda: nn.RNN(3, 4, nonlinearity="x"), lambda: nn.RNNBase("X", 3, 4),
        lambda: nn.RNNCell(3, 4, nonlinearity="x")(zeros(2, 3)), lambda: nn.LSTMCell(3, 4)(zeros(2, 2, 3)),
        lambda: nn.GRUCell(3, 4)(zeros(2, 3), zeros(3, 4)), lambda: nn.LSTMCell(3, 4)(zeros(2, 5)),
        lambda: rnn.pack_padded_sequence(zeros(3, 2, 4), [2, 3]), lambda: rnn.pack_padded_sequence(zeros(3, 2), [3]),
        lambda: rnn.pack_padded_sequence(zeros(3, 2, 4), [3, 0]), lambda: rnn.pad_sequence([]),
        lambda: rnn.pad_packed_sequence(rnn.pack_sequence([zeros(3)]), total_length=2),
    ]
    return [raised(call) for call in calls]


@case
def rows(t):
    """Ops at the user's level of a profile."""
    found = []
    x = t.torch.zeros(3, 2, 3)
    for module in (t.nn.LSTM(3, 4, batch_first=True), t.nn.GRU(3, 4), t.nn.RNN(3, 4, nonlinearity="relu"),
                   t.nn.LSTMCell(3, 4)):
        given = x[0] if isinstance(module, t.nn.LSTMCell) else x
        module(given)
        with t.torch.profiler.profile(activities=[t.torch.profiler.ProfilerActivity.CPU]) as prof:
            module(given)
        found.append([e.name for e in prof.events() if e.cpu_parent is None])
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
