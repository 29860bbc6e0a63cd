# SPDX-License-Identifier: Apache-2.0
"""The accelerator: what torch.cuda offers, for whichever backend serves this one.

The current device and the current streams belong to threads, as in torch, and live in libmindtorch. A device is
named by an index, by "npu:1" or torch.device, and None is the current one.
"""

from . import _C, random as _random
from ._C import AcceleratorError, Event, OutOfMemoryError, Stream  # noqa: F401 for users


def _checked(device):
    """A device of this kind as "npu:N"; None is the current one."""
    if device is None:
        return f"npu:{_C._device_current()}"
    if isinstance(device, bool):
        raise TypeError(f"device must be torch.device, str or int, not bool: {device}")
    if isinstance(device, int):
        index = device
        if index > 127:
            raise RuntimeError(f"Device index must be between 0 and 127, but got {index}")
    else:
        device = _C.device(device)
        if device.type != "npu":
            raise ValueError(f"Expected an npu device, but got: {device}")
        index = _C._device_current() if device.index is None else device.index
    if index < 0:
        raise ValueError(f"Invalid device index: {index}")
    return f"npu:{index}"


# ---- devices ----


def device_count():
    """How many there are."""
    return _C._device_count()


def is_available():
    """Whether there is one."""
    return device_count() > 0


def is_initialized():
    """Whether one can be used now: there is nothing to wait for."""
    return is_available()


def init():
    """Does nothing: devices are ready when they are there."""


def current_device():
    """The index that None stands for on this thread."""
    return _C._device_current()


def set_device(device):
    """Makes it the current device of this thread; a negative index changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    _C._device_set(_checked(device))


class device:
    """`with npu.device(1)`: the current device inside; a negative index or None changes nothing."""

    def __init__(self, device):
        negative = device is None or isinstance(device, int) and device < 0
        self._inside = None if negative else _checked(device)
        self._before = []  # of each block that is open: one object may be entered again inside itself

    def __enter__(self):
        before = _C._device_current()
        if self._inside is not None:
            _C._device_set(self._inside)
        self._before.append(before)

    def __exit__(self, *error):
        before = self._before.pop()
        if self._inside is not None:
            set_device(before)
        return False


class device_of(device):
    """`with npu.device_of(tensor)`: the tensor's device; nothing for a tensor of the host."""

    def __init__(self, obj):
        super().__init__(obj.get_device())


def synchronize(device=None):
    """Waits for everything that was started; returns at once where there is no device."""
    if device is not None or is_available():
        _C._device_synchronize(_checked(device))


def get_device_name(device=None):
    """What the device is, for people."""
    return _C._device_info(_checked(device))[0]


class _NpuDeviceProperties:
    """What get_device_properties() returns."""

    def __init__(self, name, total_memory):
        self.name, self.total_memory = name, total_memory
        self.major, self.minor = 0, 0  # as get_device_capability()

    def __repr__(self):
        return f"_NpuDeviceProperties(name='{self.name}', total_memory={self.total_memory >> 20}MB)"


def get_device_properties(device=None):
    """Its name and total_memory."""
    return _NpuDeviceProperties(*_C._device_info(_checked(device))[:2])


def get_device_capability(device=None):
    """(0, 0): a device here has no CUDA architecture, so code that asks for a newer one takes its general way."""
    _C._device_info(_checked(device))
    return 0, 0


def is_bf16_supported(including_emulation=True):
    """Whether there is a device: each has bfloat16."""
    return is_available()


def get_arch_list():
    """None: kernels are the backend's."""
    return []


def ipc_collect():
    """There is no memory of other processes to collect."""


def can_device_access_peer(device, peer_device):
    """Whether one can copy from the other without the host: all that there are can."""
    for each in (device, peer_device):
        _C._device_info(_checked(each))
    return True


# ---- streams ----


def current_stream(device=None):
    """The stream on which this thread's work for the device goes."""
    return _C._current_stream(_checked(device))


def default_stream(device=None):
    """The device's default stream."""
    return _C._default_stream(_checked(device))


def set_stream(stream):
    """Makes the stream, and its device, the current ones of this thread; None changes nothing."""
    _C._set_stream(stream)


class StreamContext:
    """`with npu.stream(s)`: the stream, and its device, are the current ones inside."""

    def __init__(self, stream):
        self.stream = stream
        self._before = []  # of each block that is open

    def __enter__(self):
        if self.stream is not None:
            before = current_stream(self.stream.device), current_stream()
            set_stream(self.stream)
            self._before.append(before)

    def __exit__(self, *error):
        if self._before:
            there, here = self._before.pop()
            set_stream(there)
            set_stream(here)
        return False


def stream(stream):
    """A block on a stream: `with npu.stream(s):`. None changes nothing."""
    return StreamContext(stream)


# ---- memory ----


def memory_stats(device=None):
    """The allocator's counters, by torch's names; none where there is no device."""
    return _C._device_memory_stats(_checked(device)) if is_available() else {}


def memory_allocated(device=None):
    """Bytes that tensors have now."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device=None):
    """The most bytes that tensors had since the start or the last reset."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device=None):
    """Bytes taken from the device now, cached blocks included."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device=None):
    """The most bytes taken from the device since the start or the last reset."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device=None):
    """Resets the peaks; nothing where there is no device."""
    if is_available():
        _C._device_reset_peaks(_checked(device))


reset_max_memory_allocated = reset_peak_memory_stats


def empty_cache():
    """Gives blocks that no tensor uses back to the devices."""
    for index in range(device_count()):
        _C._device_empty_cache(f"npu:{index}")


def mem_get_info(device=None):
    """(free, total) bytes of the device."""
    _, total, free = _C._device_info(_checked(device))
    return free, total


def _size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 8192:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def memory_summary(device=None, abbreviated=False):
    """The counters as a table for people."""
    name = _checked(device)
    stats = memory_stats(name)
    free, total = mem_get_info(name)
    wide = 53
    rows = [f" MindTorch NPU memory summary, device {name} ".center(wide), None,
            f" {'Metric':<21} | {'Cur Usage':>12} | {'Peak Usage':>12} ", None]
    for text, key in (("Allocated memory", "allocated_bytes"), ("Reserved memory", "reserved_bytes")):
        now, peak = (_size_text(stats[f"{key}.all.{when}"]) for when in ("current", "peak"))
        rows.append(f" {text:<21} | {now:>12} | {peak:>12} ")
    rows.append(f" {'Allocations':<21} | {stats['allocation.all.current']:>12} | "
                f"{stats['allocation.all.allocated']:>8} all ")
    rows.append(f" {'Free of the device':<21} | {_size_text(free):>12} | {_size_text(total):>9} of ")
    line = "|" + "=" * wide + "|"
    inside = ("|" + ("-" * wide if row is None else row) + "|" for row in rows)
    return "\n".join([line, *inside, line]) + "\n"


# ---- random numbers: one generator serves the host and all devices ----


def manual_seed(seed):
    """Seeds the generator; nothing where there is no device."""
    if is_available():
        _random.manual_seed(seed)


manual_seed_all = manual_seed


def seed():
    """Seeds the generator from the system; nothing where there is no device."""
    if is_available():
        _random.seed()


seed_all = seed


def initial_seed():
    """What the generator was seeded with."""
    return _random.initial_seed()


def get_rng_state(device="npu"):
    """The generator's state, a tensor of uint8 on the host."""
    _checked(device)
    return _random.get_rng_state()


def set_rng_state(new_state, device="npu"):
    """Goes back to a state of get_rng_state()."""
    _checked(device)
    _random.set_rng_state(new_state)


def get_rng_state_all():
    """A state for each device; all are the same."""
    return [_random.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states):
    """Goes back to states of get_rng_state_all()."""
    for state in new_states:
        _random.set_rng_state(state)


def __getattr__(name):
    if name == "_sim":
        from . import _npu_sim
        return _npu_sim
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
