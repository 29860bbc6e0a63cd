# SPDX-License-Identifier: Apache-2.0
"""Activities: how they may be written, and which of them this process has."""
from mtprof import _mtprof
from mtprof._mtprof import WATCH_ALL as ALL_BITS, WATCH_CPU as CPU_BIT, WATCH_DEVICE as DEVICE_BIT
from mtprof._warnings import warn
from mtprof.enums import ProfilerActivity

_ACCEPTED = "CPU, NPU, CUDA, GPU, PrivateUse1"
_NAMES = {name.lower(): member for name, member in ProfilerActivity.__members__.items()}
_DEVICE = (ProfilerActivity.CUDA, ProfilerActivity.PrivateUse1)

_accelerator = ProfilerActivity.PrivateUse1  # the host's


def set_accelerator(name):
    """What the accelerator of the host is called: "cuda", or that of a backend of our own."""
    global _accelerator
    _accelerator = ProfilerActivity.CUDA if name == "cuda" else ProfilerActivity.PrivateUse1


class ActivityError(ValueError, TypeError):
    """Something that is no activity."""


def supported_activities() -> set[ProfilerActivity]:
    """What can be profiled here: the CPU, and the accelerator where there is one."""
    if _mtprof.device_sources():
        return {ProfilerActivity.CPU, _accelerator}
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether there is a tracer. There is."""
    return True


def one(value):
    """The member for a ProfilerActivity or its name: any case, and only the last dotted part counts."""
    if isinstance(value, ProfilerActivity):
        return value
    if type(value).__name__ == "ProfilerActivity":  # torch's
        value = getattr(value, "name", value)
    if isinstance(value, str):
        member = _NAMES.get(value.rpartition(".")[2].lower())
        if member is not None:
            return member
        raise ActivityError(f"Expected ProfilerActivity or dict, got {value!r}; accepted are {_ACCEPTED}")
    raise ActivityError(f"Expected ProfilerActivity or dict, got {type(value)}: {value!r}; "
                        f"accepted are {_ACCEPTED}")


# torch's names of what an activity consists of. Only whether there are any decides what is recorded.
_TYPES = frozenset("""
    CPU_OP USER_ANNOTATION EXTERNAL_CORRELATION CUDA_RUNTIME CUDA_DRIVER CPU_INSTANT_EVENT PYTHON_FUNCTION GPU_MEMCPY
    GPU_MEMSET CONCURRENT_KERNEL KERNEL GPU_USER_ANNOTATION CUDA_SYNC OVERHEAD COLLECTIVE_COMM
""".split())


def _types(member, types):
    try:
        found = set(types)
    except TypeError:
        raise ActivityError(f"the types of {member} must be a list, empty to collect none of them, "
                            f"not {types!r}") from None
    for name in found:
        if not isinstance(name, str) or name.upper() not in _TYPES:
            raise RuntimeError(f"Unknown or non-member activity type name: {name!r}; of {member} there are "
                               f"{', '.join(sorted(_TYPES))}")
    return found


def _items(activities):
    if isinstance(activities, (str, ProfilerActivity)):
        raise ActivityError(f"Expected an iterable of ProfilerActivity, got {activities!r}; write [{activities!r}]")
    try:
        return [activities] if isinstance(activities, dict) else list(activities)
    except TypeError:
        raise ActivityError(f"Expected an iterable of ProfilerActivity, got {activities!r}; "
                            f"accepted are {_ACCEPTED}") from None


def members(activities):
    """The members for an iterable of ProfilerActivity and names."""
    return {one(item) for item in _items(activities)}


def parse(activities):
    """(members, filters) of what a caller gave: members and names, or dicts of them to lists of types."""
    if activities is None:
        return supported_activities(), {}
    found, filters = [], {}
    for item in _items(activities):
        pairs = item.items() if isinstance(item, dict) else ((item, None),)
        for key, types in pairs:
            member = one(key)
            if member in found:
                raise ValueError(f"Activity {member} specified more than once")
            found.append(member)
            if types is not None:
                filters[member] = _types(member, types)
    if not found:
        raise AssertionError(f"No valid profiler activities found in {activities!r}; accepted are {_ACCEPTED}, "
                             f"and None for all that is supported")
    return set(found), filters


def bits(members, warned=True):
    """The recorder's bits for activities; warns of what is not available here."""
    result = 0
    for member in sorted(members, key=int):
        if member is ProfilerActivity.CPU:
            result |= CPU_BIT
        elif member in _DEVICE:
            result |= DEVICE_BIT
            if warned and not _mtprof.device_sources():
                name = "CUDA" if member is ProfilerActivity.CUDA else "NPU"
                warn(f"{name} is not available, disabling {name} profiling")
        elif warned:
            warn(f"{member.name} is not available, disabling {member.name} profiling")
    return result


def muted_bits(filters):
    """Groups of which nothing is collected: those with an empty list of types."""
    return bits([member for member, types in filters.items() if not types], warned=False)
