# SPDX-License-Identifier: Apache-2.0
"""Whether the tests run under AddressSanitizer, which tests/python.cmake loads before the interpreter.

It keeps freed memory aside: addresses are not used again soon, and processes grow. A child of a fork beside
threads may find its allocator locked for ever.
"""
import os

UNDER_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")
