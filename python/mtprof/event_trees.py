# SPDX-License-Identifier: Apache-2.0
"""The tree of events made by hand: which is inside which, by time, as torch finds it.

Recorded events have their tree from the trace and need none of this.
"""
from .enums import DeviceType

_BACKWARD = 1  # RecordScope.BACKWARD_FUNCTION


def build_tree(events):
    """Nests the events, removes duplicates and gives backward events the stacks of their forward ones."""
    nest(events)
    remove_duplicates(events)
    set_backward_stacks(events)


def nest(events):
    """Sets cpu_parent and cpu_children of host events, by thread and time."""
    groups = {}
    for event in events:
        if not event.is_async and event.device_type == DeviceType.CPU:
            groups.setdefault((event.thread, event.node_id), []).append(event)
    for group in groups.values():
        around = []
        for event in sorted(group, key=lambda e: (e.time_range.start, -e.time_range.end)):
            while around and (event.time_range.start >= around[-1].time_range.end
                              or event.time_range.end > around[-1].time_range.end):
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
                if event.cpu_parent is not None:
                    raise AssertionError(f"There is already a CPU parent event for {event.key}")
                event.set_cpu_parent(around[-1])
            around.append(event)


def remove_duplicates(events):
    """An only child with its parent's name goes; the parent takes over its children and kernels.

    (torch loses the parent's own kernels there.)
    """
    gone = set()
    for event in events:
        parent = event.cpu_parent
        if parent is not None and parent.name == event.name and len(parent.cpu_children) == 1:
            # Whether another event is such an only child does not change by this: one round is enough.
            parent.cpu_children = event.cpu_children
            parent.kernels = [*parent.kernels, *event.kernels]
            for child in event.cpu_children:
                child.cpu_parent = parent
            gone.add(id(event))
    if gone:
        events[:] = [event for event in events if id(event) not in gone]


def _backward_around(event):
    """The event itself, or the innermost one around it, that is a backward one; None: there is none."""
    while event is not None and event.scope != _BACKWARD:
        event = event.cpu_parent
    return event


def set_backward_stacks(events):
    """Backward events, and what runs in them, get the stack of the forward event with their number."""
    around = [_backward_around(event) for event in events]
    stacks = {}
    for event, backward in zip(events, around):
        if backward is None:
            stacks.setdefault((event.sequence_nr, event.thread), event.stack)
    for event, backward in zip(events, around):
        if backward is not None:
            if backward.fwd_thread is None:
                raise AssertionError("Expected fwd_thread to be set for backward parent")
            event.stack = stacks.get((backward.sequence_nr, backward.fwd_thread), [])
