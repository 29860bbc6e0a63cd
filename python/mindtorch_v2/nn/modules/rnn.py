# SPDX-License-Identifier: Apache-2.0
"""RNN, LSTM, GRU and their cells. The work is in rows of the op table."""

import math
import numbers
import warnings

import mindtorch_v2 as torch

from .. import init
from .._recurrent import PackedSequence
from ..parameter import Parameter, register_empty
from .module import Module
from ..._C import ops

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim=1):
    """tensor in another order along dim."""
    return tensor.index_select(dim, permutation)


def _check_numbers(mode, input_size, hidden_size, num_layers, dropout, proj_size):
    if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    for name, number in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if number <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


class RNNBase(Module):
    """A recurrent network of some mode: its parameters, and what its inputs must be."""

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        _check_numbers(mode, input_size, hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        for layer in range(num_layers):
            for side in ("", "_reverse") if bidirectional else ("",):
                self._all_weights.append(self._add_direction(layer, side, device, dtype))
        self.reset_parameters()

    def _add_direction(self, layer, side, device, dtype):
        """Parameters of one direction of a layer; gives their names."""
        gates = _GATES[self.mode] * self.hidden_size
        state = self.proj_size or self.hidden_size
        below = self.input_size if layer == 0 else state * (2 if self.bidirectional else 1)
        shapes = {"weight_ih": (gates, below), "weight_hh": (gates, state)}
        if self.bias:
            shapes.update(bias_ih=(gates,), bias_hh=(gates,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{side}" for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
        return names

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing: parameters are not copied into one piece of memory here."""

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """RuntimeError unless the input has the right number of features."""
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_size(self, input, batch_sizes, width):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, width)

    def get_expected_hidden_size(self, input, batch_sizes):
        """The sizes of hx."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """RuntimeError unless hx has these sizes."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """RuntimeError unless the sizes of input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state in another order of the batch."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    # What differs between one state and the two of an LSTM.

    def _widths(self):
        return (self.hidden_size,)

    def _as_state(self, states):
        return states[0]

    def _check_unbatched(self, hx):
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")

    def _check_batched(self, hx):
        if hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def _map_state(self, function, hx):
        return function(hx)

    def forward(self, input, hx=None):
        """(output, last state); output is packed where input is."""
        batch_sizes = sorted_indices = unsorted_indices = None
        original = input
        if isinstance(original, PackedSequence):
            input, batch_sizes, sorted_indices, unsorted_indices = original
        batched = batch_sizes is not None or input.dim() == 3
        if batch_sizes is None:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
                )
            if not batched:
                batch_dim = 0 if self.batch_first else 1
                input = input.unsqueeze(batch_dim)
        if hx is None:
            sizes = [self._state_size(input, batch_sizes, width) for width in self._widths()]
            hx = self._as_state([torch.zeros(size, dtype=input.dtype, device=input.device) for size in sizes])
        else:
            if batch_sizes is None and not batched:
                self._check_unbatched(hx)
                hx = self._map_state(lambda state: state.unsqueeze(1), hx)
            elif batch_sizes is None:
                self._check_batched(hx)
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run(input, hx, batch_sizes)
        if isinstance(original, PackedSequence):
            packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(hidden, unsorted_indices)
        if not batched:
            output = output.squeeze(batch_dim)
            hidden = self._map_state(lambda state: state.squeeze(1), hidden)
        return output, hidden

    def _run(self, input, hx, batch_sizes):
        op = getattr(ops, self.mode.lower())
        rest = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            result = op(input, hx, self._flat_weights, *rest, self.batch_first)
        else:
            result = op(input, batch_sizes, hx, self._flat_weights, *rest)
        return result[0], self._as_state(tuple(result[1:]))

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, in layers."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: a state h and a cell c with gates i, f, g and o, in layers."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def _widths(self):
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def _as_state(self, states):
        return tuple(states)

    def _check_unbatched(self, hx):
        if hx[0].dim() != 2 or hx[1].dim() != 2:
            raise RuntimeError(
                "For unbatched 2-D input, hx and cx should also be 2-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _check_batched(self, hx):
        if hx[0].dim() != 3 or hx[1].dim() != 3:
            raise RuntimeError(
                "For batched 3-D input, hx and cx should also be 3-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _map_state(self, function, hx):
        return tuple(function(state) for state in hx)

    def get_expected_cell_size(self, input, batch_sizes):
        """The sizes of cx."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """RuntimeError unless the sizes of input and states fit."""
        self.check_input(input, batch_sizes)
        hidden_size = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], hidden_size, "Expected hidden[0] size {}, got {}")
        cell_size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], cell_size, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """Both states in another order of the batch."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _run(self, input, hx, batch_sizes):
        return super()._run(input, list(hx), batch_sizes)


class GRU(RNNBase):
    """A state h with gates r, z and n, in layers."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """The parameters of one step."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        register_empty(self, "weight_ih", (gates, input_size), device, dtype)
        register_empty(self, "weight_hh", (gates, hidden_size), device, dtype)
        register_empty(self, "bias_ih", gates if bias else None, device, dtype)
        register_empty(self, "bias_hh", gates if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Gives the parameters their first values again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_dims(self, input, states):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for label, state in states.items():
            if state.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {label} to be 1D or 2D, got {state.dim()}D instead")

    def _zeros(self, input):
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _step(self, op, input, hx):
        """One state: batches of one are added and taken away again."""
        self._check_dims(input, {} if hx is None else {"hidden": hx})
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden0 batch size {hx.size(0)}"
            )
        result = op(input, hx, *self._weights())
        return result if batched else result.squeeze(0)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    __constants__ = [*RNNCellBase.__constants__, "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(ops.rnn_tanh_cell if self.nonlinearity == "tanh" else ops.rnn_relu_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        if hx is not None and not isinstance(hx, (tuple, list)):
            raise TypeError(
                f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type(hx).__name__}"
            )
        states = {} if hx is None else {f"hx[{i}]": state for i, state in enumerate(hx)}
        self._check_dims(input, states)
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = [zeros, zeros]
        elif not batched:
            hx = [state.unsqueeze(0) for state in hx]
        result = ops.lstm_cell(input, list(hx), *self._weights())
        return tuple(result) if batched else tuple(state.squeeze(0) for state in result)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(ops.gru_cell, input, hx)
