# SPDX-License-Identifier: Apache-2.0
"""L-BFGS: Newton's method with a Hessian that is guessed from the last steps.

    direction    two loops over the kept pairs (step s, change of gradient y), Nocedal and Wright 7.4
    step         lr, or with line_search_fn="strong_wolfe" a length that satisfies both conditions of
                 Wolfe, found by bracketing and cubic interpolation (Nocedal and Wright 3.5)

A step of the optimizer makes up to max_iter such steps, each of which asks the closure anew. Its state
is torch's, in the state of the first parameter.
"""

import mindtorch_v2 as torch

from .optimizer import Optimizer, _check_lr

__all__ = ["LBFGS"]


def _cubic_minimum(a, b, bounds=None):
    """Where the cubic through two points (x, value, slope) is smallest, within the bounds."""
    (x1, f1, g1), (x2, f2, g2) = a[:3], b[:3]
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    inside = d1**2 - g1 * g2
    if inside < 0:
        return (low + high) / 2.0
    d2 = inside**0.5
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class _WolfeSearch:
    """A step length along a direction. Points are (length, value, slope, gradient)."""

    enough, flat = 1e-4, 0.9  # constants of the two conditions

    def __init__(self, ask, length, longest_part, tolerance, most):
        self.ask = ask  # length -> point
        self.most = min(25, most)  # points after the first
        self.length = length
        self.longest_part = longest_part  # of the direction
        self.tolerance = tolerance
        self.asked = 0

    def point(self, length):
        self.asked += 1
        return self.ask(length)

    def is_high(self, point, start):
        return point[1] > start[1] + self.enough * point[0] * start[2]

    def is_flat(self, point, start):
        return abs(point[2]) <= -self.flat * start[2]

    def run(self, start):
        """The point that was chosen."""
        found, bracket, tries = self.bracket(start)
        if found is not None:
            return found
        return self.zoom(start, bracket, tries)

    def bracket(self, start):
        """(point, None, tries) if one satisfies both conditions, or (None, two points, tries)."""
        before, here = start, self.point(self.length)
        tries = 0
        while tries < self.most:
            if self.is_high(here, start) or (tries > 1 and here[1] >= before[1]):
                return None, [before, here], tries
            if self.is_flat(here, start):
                return here, None, tries
            if here[2] >= 0:
                return None, [before, here], tries
            length = here[0]
            bounds = (length + 0.01 * (length - before[0]), length * 10)
            following = _cubic_minimum(before, here, bounds)
            before, here = here, self.point(following)
            tries += 1
        return None, [start, here], tries

    def zoom(self, start, pair, tries):
        """Makes the bracket smaller until its lower end is good, or it is too small."""
        low, high = (0, 1) if pair[0][1] <= pair[1][1] else (1, 0)
        close_before = False
        while tries < self.most:
            width = abs(pair[1][0] - pair[0][0])
            if width * self.longest_part < self.tolerance:
                break
            length = _cubic_minimum(pair[0], pair[1])
            length, close_before = self.moved_in(length, pair, close_before)
            here = self.point(length)
            tries += 1
            if self.is_high(here, start) or here[1] >= pair[low][1]:
                pair[high] = here
                low, high = (0, 1) if pair[0][1] <= pair[1][1] else (1, 0)
                continue
            done = self.is_flat(here, start)
            if not done and here[2] * (pair[high][0] - pair[low][0]) >= 0:
                pair[high] = pair[low]
            pair[low] = here
            if done:
                break
        return pair[low]

    @staticmethod
    def moved_in(length, pair, close_before):
        """A point close to an end of the bracket is moved a tenth of the width into it, if it happens
        twice or the point is outside."""
        low, high = min(pair[0][0], pair[1][0]), max(pair[0][0], pair[1][0])
        margin = 0.1 * (high - low)
        if min(high - length, length - low) >= margin:
            return length, False
        if not close_before and low < length < high:
            return length, True
        return (high - margin if abs(length - high) < abs(length - low) else low + margin), False


class LBFGS(Optimizer):
    """step(closure) needs a closure that clears gradients, computes the loss and calls backward()."""

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        _check_lr(lr)
        super().__init__(
            params,
            dict(
                lr=lr,
                max_iter=max_iter,
                max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                tolerance_grad=tolerance_grad,
                tolerance_change=tolerance_change,
                history_size=history_size,
                line_search_fn=line_search_fn,
            ),
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    # ---- all parameters as one vector ----

    def _gradient(self):
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return torch.cat([part.reshape(-1) for part in parts])

    def _move(self, length, direction):
        begin = 0
        for p in self._params:
            p.add_(direction[begin : begin + p.numel()].view_as(p), alpha=length)
            begin += p.numel()

    def _point(self, closure, before, length, direction):
        """The point `length` away from the parameters `before`, which are set again."""
        self._move(length, direction)
        loss = float(self._closure_loss(closure))
        gradient = self._gradient()
        for p, old in zip(self._params, before):
            p.copy_(old)
        return length, loss, float(gradient.dot(direction)), gradient

    # ---- the direction ----

    @staticmethod
    def _remember(state, gradient, history_size):
        """Keeps the last step and its change of gradient, if the curvature along it is positive."""
        y = gradient.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        product = float(y.dot(s))
        if product <= 1e-10:
            return
        if len(state["old_dirs"]) == history_size:
            for name in ("old_dirs", "old_stps", "ro"):
                state[name].pop(0)
        state["old_dirs"].append(y)
        state["old_stps"].append(s)
        state["ro"].append(1.0 / product)
        state["H_diag"] = product / float(y.dot(y))

    @staticmethod
    def _direction(state, gradient, history_size):
        if "al" not in state or state["al"] is None:
            state["al"] = [None] * history_size
        ys, steps, inverses, shares = state["old_dirs"], state["old_stps"], state["ro"], state["al"]
        q = gradient.neg()
        for i in range(len(ys) - 1, -1, -1):
            shares[i] = float(steps[i].dot(q)) * inverses[i]
            q.add_(ys[i], alpha=-shares[i])
        q.mul_(state["H_diag"])
        for i, y in enumerate(ys):
            q.add_(steps[i], alpha=shares[i] - float(y.dot(q)) * inverses[i])
        return q

    # ---- the step ----

    @torch.no_grad()
    def step(self, closure):
        """Makes up to max_iter steps and returns the loss of the first one."""
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._closure_loss(closure)
        loss = float(first)
        state["func_evals"] += 1
        gradient = self._gradient()
        if float(gradient.abs().max()) > group["tolerance_grad"]:
            self._iterate(closure, group, state, loss, gradient)
        return first

    def _iterate(self, closure, group, state, loss, gradient):
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        asked = 1
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=gradient.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
                length = min(1.0, 1.0 / float(gradient.abs().sum())) * lr
            else:
                self._remember(state, gradient, group["history_size"])
                state["d"] = self._direction(state, gradient, group["history_size"])
                length = lr
            direction = state["d"]
            state["prev_flat_grad"], state["prev_loss"], state["t"] = gradient.clone(), loss, length
            slope = float(gradient.dot(direction))
            if slope > -tolerance:
                return
            last = iteration == group["max_iter"]
            start = (length, loss, slope, gradient)
            most = group["max_eval"] - asked
            length, new_loss, gradient, count = self._go(closure, group, start, direction, last, most)
            state["t"] = length
            asked += count
            state["func_evals"] += count
            largest = float(gradient.abs().max())
            if last or asked >= group["max_eval"] or largest <= group["tolerance_grad"]:
                return
            if float(direction.mul(length).abs().max()) <= tolerance or abs(new_loss - loss) < tolerance:
                return
            loss = new_loss

    def _go(self, closure, group, start, direction, last, most):
        """Moves the parameters: (length, loss there, gradient there, how often the closure was asked)."""
        length, loss, slope, gradient = start
        method = group["line_search_fn"]
        if method is None:
            self._move(length, direction)
            if last:  # nothing asks for the loss behind the last step
                return length, loss, gradient, 0
            loss = float(self._closure_loss(closure))
            return length, loss, self._gradient(), 1
        if method != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        before = [p.clone() for p in self._params]
        search = _WolfeSearch(
            lambda x: self._point(closure, before, x, direction),
            length,
            float(direction.abs().max()),
            group["tolerance_change"],
            most,
        )
        length, loss, _, gradient = search.run((0.0, loss, slope, gradient.clone()))
        self._move(length, direction)
        return length, loss, gradient, search.asked
