# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's line, however deep inside the packages they are raised."""
import os
import sys
import warnings

_own = [os.path.dirname(os.path.abspath(__file__)) + os.sep]


def own_folder(path):
    """Counts the files of a folder as ours."""
    _own.append(os.path.abspath(path) + os.sep)


def warn(message, category=UserWarning):
    """warnings.warn() for the first caller that is not one of our own files."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(tuple(_own)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level if frame is not None else 2)
