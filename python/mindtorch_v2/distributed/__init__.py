# SPDX-License-Identifier: Apache-2.0
"""torch.distributed for one process: a group of one rank, whose collectives give back what they got.

More ranks are refused by init_process_group(), which is where a program learns it.
"""

import os as _os
from datetime import timedelta as _timedelta
from enum import Enum as _Enum

import mindtorch_v2 as _torch

default_pg_timeout = _timedelta(minutes=30)


class ReduceOp(_Enum):
    """How values of ranks are combined; of one rank's values nothing changes."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class Backend(str):
    """A backend's name, in lower case."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"

    def __new__(cls, name):
        return str.__new__(cls, str(name).lower())


class Work:
    """A collective that has been done."""

    def __init__(self, result=None):
        self._result = result

    def is_completed(self):
        """Always: there is nobody to wait for."""
        return True

    is_success = is_completed

    def wait(self, timeout=None):
        """Returns at once."""
        return True

    def result(self):
        """The tensors of the collective."""
        return self._result

    def get_future(self):
        """Not here: there are no futures."""
        raise NotImplementedError("distributed: Work.get_future() is not there; wait() returns at once")


class ProcessGroup:
    """The group of this process alone."""

    def __init__(self, backend):
        self._backend = Backend(backend)

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1

    def name(self):
        """The backend that was asked for."""
        return str(self._backend)


class DistError(RuntimeError):
    """Errors of this package have torch's names."""


class DistBackendError(DistError):
    """An error of a backend."""


class _Group:
    """Where torch keeps the default group."""

    WORLD = None


group = GroupMember = _Group


def is_available():
    """True: one process can be a group."""
    return True


def is_initialized():
    """Whether init_process_group() has been called."""
    return group.WORLD is not None


def is_gloo_available():
    """True: a group of one needs no transport."""
    return True


def is_nccl_available():
    """False."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend):
    """Whether a group may be made with that backend."""
    return str(backend).lower() == "gloo"


def is_torchelastic_launched():
    """Whether torchrun started the process."""
    return "TORCHELASTIC_RUN_ID" in _os.environ


def _from_environment(name):
    if name not in _os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return int(_os.environ[name])


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Makes the default group, of this process alone; another world size is refused.

    Nothing is opened: init_method and store are not used, except that env:// (the default) asks the
    environment for RANK and WORLD_SIZE.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is None and (init_method is None or init_method.startswith("env://")):
        rank = _from_environment("RANK") if rank < 0 else rank
        world_size = _from_environment("WORLD_SIZE") if world_size < 0 else world_size
    if world_size != 1 or rank != 0:
        raise NotImplementedError(
            f"init_process_group(): world size {world_size}, rank {rank}: mindtorch_v2 has groups of one process alone"
        )
    group.WORLD = ProcessGroup(backend or "gloo")


def destroy_process_group(group=None):
    """Forgets the default group."""
    _of(group)
    _Group.WORLD = None


def _of(group):
    if _Group.WORLD is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return group or _Group.WORLD


def get_rank(group=None):
    """The number of this process, 0."""
    return _of(group).rank()


def get_world_size(group=None):
    """How many processes there are, 1."""
    return _of(group).size()


def get_backend(group=None):
    """The backend's name."""
    return _of(group).name()


def get_process_group_ranks(group=None):
    """[0]."""
    _of(group)
    return [0]


def get_global_rank(group, group_rank):
    """The same number: there is one rank."""
    _check_rank("get_global_rank", group_rank)
    return group_rank


get_group_rank = get_global_rank


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK of the environment."""
    if "LOCAL_RANK" in _os.environ:
        return int(_os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, **others):
    """Another group of this process."""
    world = _of(None)
    if ranks is not None and list(ranks) != [0]:
        raise ValueError(f"new_group(): the ranks are [0], got {list(ranks)}")
    return ProcessGroup(backend or world.name())


# ---- collectives: every one gives the rank's own value ----


def _check_rank(name, rank):
    if rank not in (0, None):
        raise RuntimeError(f"{name}(): invalid rank {rank}: there is rank 0 alone")


def _done(async_op, *tensors):
    return Work(list(tensors)) if async_op else None


def _copy(name, outputs, inputs):
    """Copies each input into its output; both are lists of one tensor for each rank."""
    if len(outputs) != len(inputs):
        raise ValueError(f"{name}(): needs {len(inputs)} tensor for one rank, got {len(outputs)}")
    with _torch.no_grad():
        for output, value in zip(outputs, inputs):
            output.copy_(value.reshape(output.shape))


def barrier(group=None, async_op=False, device_ids=None):
    """Waits for nobody."""
    _of(group)
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Waits for nobody."""
    _of(group)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor as it is."""
    _of(group)
    return _done(async_op, tensor)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensors as they are."""
    _of(group)
    return _done(async_op, *tensors)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The tensor as it is."""
    _of(group)
    _check_rank("reduce", dst)
    return _done(async_op, tensor)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor as it is."""
    _of(group)
    _check_rank("broadcast", src)
    return _done(async_op, tensor)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[0] gets the tensor."""
    _of(group)
    _copy("all_gather", tensor_list, [tensor])
    return _done(async_op, *tensor_list)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The output gets the input."""
    _of(group)
    _copy("all_gather_into_tensor", [output_tensor], [input_tensor])
    return _done(async_op, output_tensor)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """gather_list[0] gets the tensor."""
    _of(group)
    _check_rank("gather", dst)
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _copy("gather", gather_list, [tensor])
    return _done(async_op, *gather_list)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """The tensor gets scatter_list[0]."""
    _of(group)
    _check_rank("scatter", src)
    if scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _copy("scatter", [tensor], scatter_list)
    return _done(async_op, tensor)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets input_list[0]."""
    _of(group)
    _copy("reduce_scatter", [output], input_list)
    return _done(async_op, output)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The output gets the input."""
    _of(group)
    _copy("reduce_scatter_tensor", [output], [input])
    return _done(async_op, output)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """output_tensor_list[0] gets input_tensor_list[0]."""
    _of(group)
    _copy("all_to_all", output_tensor_list, input_tensor_list)
    return _done(async_op, *output_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """The output gets the input."""
    _of(group)
    _copy("all_to_all_single", [output], [input])
    return _done(async_op, output)


def all_gather_object(object_list, obj, group=None):
    """object_list[0] becomes the object."""
    _of(group)
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """object_gather_list[0] becomes the object."""
    _of(group)
    _check_rank("gather_object", dst)
    object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """The list as it is."""
    _of(group)
    _check_rank("broadcast_object_list", src)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """The first output becomes the first input."""
    _of(group)
    _check_rank("scatter_object_list", src)
    scatter_object_output_list[0] = scatter_object_input_list[0]


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Refused: there is no other rank."""
    _of(group)
    raise ValueError(
        "Invalid destination rank: destination rank should not be the same as the rank of the current process."
    )


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Refused: there is no other rank."""
    _of(group)
    raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")


isend, irecv = send, recv
