# SPDX-License-Identifier: Apache-2.0
"""Enumerations with torch's names and numbers."""
import enum


class _Number(enum.Enum):
    """An enumeration whose members are also numbers, as torch's are."""

    def __int__(self) -> int:
        return int(self._value_)

    __index__ = __int__


class ProfilerAction(enum.Enum):
    """What happens during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(_Number):
    """What a profiler looks at. NPU is the accelerator; CUDA and GPU mean it too."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5
    NPU = 5
    GPU = 2


class DeviceType(_Number):
    """Where something ran. A member equals its name: DeviceType.CPU == "CPU".

    The accelerator's member also equals "NPU", MindTorch's word for it; as a key it goes by its name.
    """

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    MTIA = 19
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    PrivateUse1 = 20
    NPU = 20

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == self._name_ or (other == "NPU" and self._value_ == 20)
        return self is other

    def __hash__(self) -> int:
        return hash(self._name_)


class RecordScope(_Number):
    """What kind of scope an event is."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9
