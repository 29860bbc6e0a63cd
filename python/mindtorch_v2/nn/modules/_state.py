# SPDX-License-Identifier: Apache-2.0
"""state_dict and load_state_dict: a module's tensors by path."""

import functools
import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

from ...utils.hooks import RemovableHandle
from ..parameter import Parameter

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that is given its module first, without keeping the module alive."""

    def __init__(self, hook, module=None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        self.module = None
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class StatefulModule:
    """The part of Module that saves and loads."""

    _version = 1

    def get_extra_state(self):
        """Override to keep more than tensors in state_dict."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Override to take back what get_extra_state gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook):
        """hook(module, state_dict, prefix, local_metadata) -> None, after state_dict of this module."""
        hook._from_public_api = True
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook):
        """hook(module, prefix, keep_vars) -> None, before state_dict of this module."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not StatefulModule.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by path; they share memory with the module's."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict "
                "for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # the modules' versions, by path
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self if with_module else None)
        return handle

    def register_load_state_dict_pre_hook(self, hook):
        """hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """hook(module, incompatible_keys) -> None, after load_state_dict of this module."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        left_out = self._non_persistent_buffers_set
        persistent = {name: buffer for name, buffer in self._buffers.items() if name not in left_out}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in itertools.chain(self._parameters.items(), persistent.items()):
            if own is None:
                continue
            key = prefix + name
            if key in state_dict:
                self._load_one(name, own, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StatefulModule.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            self._collect_unexpected(state_dict, prefix, extra_key, persistent, unexpected_keys)

    def _collect_unexpected(self, state_dict, prefix, extra_key, persistent, unexpected_keys):
        for key in state_dict:
            if not key.startswith(prefix) or key == extra_key:
                continue
            rest = key[len(prefix) :].split(".", 1)
            if len(rest) > 1:
                if rest[0] not in self._modules:
                    unexpected_keys.append(key)
            elif not (
                self._parameters.get(rest[0]) is not None or persistent.get(rest[0]) is not None
            ):
                unexpected_keys.append(key)

    def _load_one(self, name, own, key, value, assign, error_msgs):
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(value)}"
            )
            return
        if own.dim() == 0 and value.dim() == 1 and value.numel() == 1:
            value = value[0]  # scalars were once saved as one element
        if value.shape != own.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the "
                f"shape in current model is {own.shape}."
            )
            return
        try:
            with torch.no_grad():
                if not assign:
                    own.copy_(value)
                    return
            if isinstance(own, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=own.requires_grad)
                else:
                    value.requires_grad_(own.requires_grad)
            setattr(self, name, value)
        except Exception as error:  # noqa: BLE001 - all of them are reported together
            action = "swapping" if assign else "copying"
            error_msgs.append(
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f'{own.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : "
                f"{error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies values by path; returns what was missing and what was too much (errors if strict)."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # modules may add to it
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata = dict(local_metadata, assign_to_params_buffers=True)
            module._load_from_state_dict(
                local, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local.items() if k.startswith(child_prefix)}, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are notexpected to "
                        "return new values, if incompatible_keys need to be modified,it should be done "
                        "inplace."
                    )

        load(self, state_dict, "")
        if strict:
            if unexpected_keys:
                listed = ", ".join(f'"{key}"' for key in unexpected_keys)
                error_msgs.insert(0, f"Unexpected key(s) in state_dict: {listed}. ")
            if missing_keys:
                listed = ", ".join(f'"{key}"' for key in missing_keys)
                error_msgs.insert(0, f"Missing key(s) in state_dict: {listed}. ")
        if error_msgs:
            listed = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing_keys, unexpected_keys)
