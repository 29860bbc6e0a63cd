# SPDX-License-Identifier: Apache-2.0
"""mtprof: a profiler that costs nanoseconds. torch.profiler's face, for any Python program."""
