# SPDX-License-Identifier: Apache-2.0
"""mindtorch_v2: tensors with torch's names and semantics, and a profiler that costs nanoseconds."""
