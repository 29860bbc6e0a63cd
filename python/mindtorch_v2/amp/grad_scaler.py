# SPDX-License-Identifier: Apache-2.0
"""GradScaler: losses are scaled so that gradients of small types do not become 0."""
import enum
import warnings

from .. import _C
from ..autograd.grad_mode import no_grad


class OptState(enum.Enum):
    """What was done with an optimizer since the last update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """scale() multiplies a loss, step() divides the gradients and steps where all of them are finite, update() makes
    the factor smaller after a step that was left out, and larger after growth_interval good ones."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._device = device
        self._enabled = enabled
        if enabled and _C.device(device).type != "cpu" and _C._device_count() == 0:
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device} is not available.  Disabling.",
                          stacklevel=2)
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
            self._init_scale = float(init_scale)
            self._scale = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker = None
            self._optimizers = {}

    def _of(self, optimizer):
        return self._optimizers.setdefault(id(optimizer), {"stage": OptState.READY, "found_inf": None})

    def _need_scale(self, name):
        assert self._scale is not None, (
            f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
            "outputs) earlier in the iteration.")

    def _start(self, device):
        if self._scale is None:
            self._scale = _C.tensor(self._init_scale, dtype=_C.float32, device=device)
            self._growth_tracker = _C.tensor(self._init_growth_tracker, dtype=_C.int32, device=device)

    def scale(self, outputs):
        """A tensor, or tensors in lists and tuples, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            self._start(outputs.device)
            return outputs * self._scale.to(device=outputs.device, non_blocking=True)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(item) for item in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale(self, optimizer, allow_fp16):
        """Divides the gradients; the number of those that had an infinity or NaN, as a tensor."""
        inverse = self._scale.double().reciprocal().float()
        found = _C.tensor(0.0, device=self._scale.device)
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    if not allow_fp16 and parameter.grad.dtype is _C.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grad = parameter.grad
                    bad = grad.isfinite().all().logical_not().to(device=found.device, dtype=_C.float32)
                    found = found.maximum(bad)
                    grad.mul_(inverse.to(grad.device))
        return found

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the factor, for those who want to see them."""
        if not self._enabled:
            return
        self._need_scale("unscale_")
        state = self._of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale(optimizer, allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step() if all gradients are finite; what it returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_scale("step")
        state = self._of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        assert state["found_inf"] is not None, "No inf checks were recorded for this optimizer."
        result = None
        if not state["found_inf"].item():
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Sets the factor for the next iteration: from what the steps found, or to new_scale."""
        if not self._enabled:
            return
        self._need_scale("update")
        if new_scale is not None:
            with no_grad():
                self._scale.copy_(new_scale) if isinstance(new_scale, _C.Tensor) else self._scale.fill_(new_scale)
        else:
            found = [state["found_inf"] for state in self._optimizers.values() if state["found_inf"] is not None]
            assert found, "No inf checks were recorded prior to update."
            self._adapt(any(item.item() for item in found))
        self._optimizers = {}

    def _adapt(self, found_inf):
        if found_inf:
            self._scale.mul_(self._backoff_factor)
            self._growth_tracker.zero_()
            return
        good = int(self._growth_tracker.item()) + 1
        if good == self._growth_interval:
            larger = self._scale * self._growth_factor
            if larger.isfinite().item():
                self._scale.copy_(larger)
            good = 0
        self._growth_tracker.fill_(good)

    def get_scale(self):
        """The factor."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """What the factor is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """What the factor is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the factor is multiplied by after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """What the factor is multiplied by after a step that was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """After how many good steps the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """After how many good steps the factor grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self):
        """Whether it does anything."""
        return self._enabled

    def state_dict(self):
        """The factor, how it changes and how many good steps there were; empty where it is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        """What state_dict() gave."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            assert not self._optimizers, ("A GradScaler instance may only be pickled at the beginning of an iteration, "
                                          "or at the end after scaler.update().")
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(), _scale=None,
                         _growth_tracker=None)
        return state
