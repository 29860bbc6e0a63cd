# SPDX-License-Identifier: Apache-2.0
"""Handles by which a registered hook can be taken away again."""

import itertools
import weakref

__all__ = ["RemovableHandle"]


def add_hook(hooks, hook, first=False, notes=()):
    """Adds a hook to an ordered dict, `first` before the others; returns the handle that removes it.

    notes: pairs of a dict with the ids of hooks that want something special, and whether this one does.
    """
    handle = RemovableHandle(hooks, extra_dict=[ids for ids, _ in notes])
    hooks[handle.id] = hook
    for ids, wanted in notes:
        if wanted:
            ids[handle.id] = True
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


class RemovableHandle:
    """Removes one entry of a dictionary of hooks; also a context manager.

    `extra_dict` names dictionaries that keep something about the same hook under the same id. The
    handle keeps none of them alive.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(RemovableHandle._ids)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        if extra_dict is None:
            extra = ()
        elif isinstance(extra_dict, (list, tuple)):
            extra = extra_dict
        else:
            extra = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self):
        """Takes the hook away; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        import collections

        def kept(hooks):
            # A dictionary that was gone when the handle was pickled becomes an empty one without a
            # holder.
            return weakref.ref(collections.OrderedDict() if hooks is None else hooks)

        hooks, self.id, extra = state
        self.hooks_dict_ref = kept(hooks)
        self.extra_dict_ref = tuple(kept(d) for d in extra)

    def __enter__(self):
        return self

    def __exit__(self, type, value, traceback):
        self.remove()
