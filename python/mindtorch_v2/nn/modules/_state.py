# SPDX-License-Identifier: Apache-2.0
"""state_dict and load_state_dict: a module's tensors by path."""

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

from ...utils.hooks import add_hook
from ..parameter import Parameter

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # the key of what get_extra_state gives


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _Report:
    """What load_state_dict found wrong, in all modules together."""

    def __init__(self):
        self.missing, self.unexpected, self.errors = [], [], []

    def keys(self):
        """The lists themselves: hooks may change them."""
        return _IncompatibleKeys(self.missing, self.unexpected)

    def refuse(self, owner, strict):
        """RuntimeError with everything that was wrong; keys count only if strict."""
        lines = []
        for what, keys in (("Missing", self.missing), ("Unexpected", self.unexpected)):
            if strict and keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                lines.append(f"{what} key(s) in state_dict: {listed}. ")
        lines += self.errors
        if lines:
            listed = "\n\t".join(lines)
            raise RuntimeError(f"Error(s) in loading state_dict for {owner}:\n\t{listed}")


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
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """hook(module, state_dict, prefix, local_metadata) -> None, after state_dict of this module."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """hook(module, prefix, keep_vars) -> None, before state_dict of this module."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _saved_tensors(self):
        """(name, tensor) of the module's own that belong into state_dict."""
        for owned, left_out in ((self._parameters, ()), (self._buffers, self._non_persistent_buffers_set)):
            for name, tensor in owned.items():
                if tensor is not None and name not in left_out:
                    yield name, tensor

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._saved_tensors():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
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
        # Hooks that want the module are listed separately: a hook bound to it would keep it alive.
        notes = [(self._load_state_dict_pre_hooks_with_module, with_module)]
        return add_hook(self._load_state_dict_pre_hooks, hook, notes=notes)

    def register_load_state_dict_pre_hook(self, hook):
        """hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """hook(module, incompatible_keys) -> None, after load_state_dict of this module."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        told = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for key, hook in self._load_state_dict_pre_hooks.items():
            hook(*((self,) if key in self._load_state_dict_pre_hooks_with_module else ()), *told)
        wanted = dict(self._saved_tensors())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in wanted.items():
            if prefix + name in state_dict:
                self._load_one(name, own, prefix + name, state_dict[prefix + name], assign, error_msgs)
        has_extra = prefix + _EXTRA_STATE_KEY_SUFFIX in state_dict
        takes_extra = type(self).set_extra_state is not StatefulModule.set_extra_state
        if has_extra and takes_extra:
            self.set_extra_state(state_dict[prefix + _EXTRA_STATE_KEY_SUFFIX])
        if not strict:
            return
        names = [*wanted, _EXTRA_STATE_KEY_SUFFIX] if takes_extra else wanted
        missing_keys += [prefix + name for name in names if prefix + name not in state_dict]
        if has_extra and not takes_extra:
            unexpected_keys.append(prefix + _EXTRA_STATE_KEY_SUFFIX)
        for key in state_dict:
            name, below, _ = key.removeprefix(prefix).partition(".")
            known = name in self._modules if below else name in wanted or name == _EXTRA_STATE_KEY_SUFFIX
            if key.startswith(prefix) and not known:
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
        if own.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)", stacklevel=2)
        try:
            if not assign:
                with torch.no_grad():
                    own.copy_(value)
                return
            if isinstance(value, Parameter) and isinstance(own, Parameter):
                value.requires_grad_(own.requires_grad)
            elif isinstance(own, Parameter):
                value = Parameter(value, requires_grad=own.requires_grad)
            setattr(self, name, value)
        except Exception as error:  # noqa: BLE001 - all of them are reported together
            action = "swapping" if assign else "copying"
            error_msgs.append(
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{own.size()} and whose dimensions in the checkpoint are {value.size()}, an exception "
                f"occurred : {error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies values by path; returns what was missing and what was too much (errors if strict)."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # modules may add to it
        if metadata is not None:
            state_dict._metadata = metadata
        report = _Report()
        self._load_with_children(state_dict, "", metadata or {}, assign, report)
        report.refuse(type(self).__name__, strict)
        return report.keys()

    def _load_with_children(self, state_dict, prefix, metadata, assign, report):
        local_metadata = metadata.get(prefix[:-1], {})
        if assign:
            local_metadata = {**local_metadata, "assign_to_params_buffers": True}
        lists = (report.missing, report.unexpected, report.errors)
        self._load_from_state_dict(state_dict, prefix, local_metadata, True, *lists)
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                below = {key: value for key, value in state_dict.items() if key.startswith(path)}
                child._load_with_children(below, path, metadata, assign, report)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, report.keys()) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are notexpected to return "
                    "new values, if incompatible_keys need to be modified,it should be done inplace."
                )
