# SPDX-License-Identifier: Apache-2.0
"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, of which rare ones share an output of the first layer.

    classes   0 .. cutoffs[0]         the head says their probability itself
              cutoffs[i] .. [i + 1]   the head says that of the cluster i, its tail that of the class in the cluster
"""

from collections import namedtuple

import mindtorch_v2 as torch

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log probability of each row's target, and the mean of their negatives; only clusters that a target is in
    are computed."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1
                or any(int(cutoff) != cutoff for cutoff in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // div_value ** (number + 1))
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **made),
                                        Linear(width, high - low, bias=False, **made)))

    def reset_parameters(self):
        """New random weights."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def _check(self, input, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.dim() != 2:
            raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input.size()}")
        if target.dim() == 0 and input.dim() != 1:
            raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input.size()}")

    def forward(self, input, target):
        """(log probabilities of the targets, loss) of rows and classes, or of one row and its class."""
        if target.dim() == 1 and input.dim() and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        self._check(input, target)
        single = target.dim() == 0
        if single:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        count = target.size(0)
        output, outputs_of_head = input.new_zeros(count), target.new_empty(count)
        found = 0
        for number, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs)):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            found += rows.numel()
            if number == 0:
                outputs_of_head.index_copy_(0, rows, target[inside])
                continue
            places = target[inside] - low
            scores = self.tail[number - 1](input.index_select(0, rows))
            outputs_of_head.index_fill_(0, rows, self.shortlist_size + number - 1)
            logs = F.log_softmax(scores, dim=1)
            output.index_copy_(0, rows, logs.gather(1, places.unsqueeze(1)).squeeze(1))
        if found != count:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")
        logs = F.log_softmax(self.head(input), dim=1)
        output += logs.gather(1, outputs_of_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _of_all_classes(self, input, head):
        result = head.new_empty((head.size(0), self.n_classes))
        logs = F.log_softmax(head, dim=1)
        result[:, :self.shortlist_size] = logs[:, :self.shortlist_size]
        for number, (tail, low, high) in enumerate(zip(self.tail, self.cutoffs, self.cutoffs[1:])):
            of_classes = F.log_softmax(tail(input), dim=1)
            result[:, low:high] = of_classes + logs[:, self.shortlist_size + number].unsqueeze(1)
        return result

    def log_prob(self, input):
        """Log probabilities of all classes, [rows, n_classes]."""
        return self._of_all_classes(input, self.head(input))

    def predict(self, input):
        """The most probable class of each row: that of log_prob(), without the clusters where the head says one of its
        own classes."""
        head = self.head(input)
        output = torch.argmax(head, dim=1)
        rare = output >= self.shortlist_size
        rows = rare.nonzero().squeeze(1)
        if rows.numel():
            logs = self._of_all_classes(input.index_select(0, rows), head.index_select(0, rows))
            output.index_copy_(0, rows, torch.argmax(logs, dim=1))
        return output
