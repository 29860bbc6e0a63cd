# SPDX-License-Identifier: Apache-2.0
"""torch.__config__: how the library was built, and its threads."""

import mindtorch_v2 as _torch

__all__ = ["parallel_info", "show"]


def show():
    """What the library is made of, as text."""
    return (f"mindtorch_v2 {_torch.version.__version__}: C11; matrices by OpenBLAS and convolutions by oneDNN where "
            "they are found at run time, USE_MKL=OFF, USE_CUDA=OFF\n")


def parallel_info():
    """Threads that ops use, as text."""
    return f"threads of an op: {_torch.get_num_threads()}\n"
