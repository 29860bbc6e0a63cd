# SPDX-License-Identifier: Apache-2.0
"""Whether the tests run under AddressSanitizer, which tests/python.cmake loads before the interpreter.

It keeps freed memory aside: addresses are not reused soon, and processes grow. A child that was forked
while other threads ran may find its allocator locked forever.
"""
import os

UNDER_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")
