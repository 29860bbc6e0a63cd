# SPDX-License-Identifier: Apache-2.0
"""torch.backends: switches of libraries that torch uses and mindtorch_v2 does not. They can be set and read."""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum, quantized, xnnpack

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized", "xnnpack"]
