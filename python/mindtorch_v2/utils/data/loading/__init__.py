# SPDX-License-Identifier: Apache-2.0
"""Parts of the loader: what a batch is (plan), the processes that make batches (worker, crew,
transport), and the order in which they are given (window)."""
