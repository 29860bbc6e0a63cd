# SPDX-License-Identifier: Apache-2.0
"""torch.backends.cpu: what the host's kernels use."""


def get_cpu_capability():
    """The name of the instructions that kernels are chosen for."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((line for line in file if line.startswith("flags")), "").split()
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
