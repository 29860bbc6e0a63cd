# SPDX-License-Identifier: Apache-2.0
"""torch.hub: the folder where models are kept. Nothing is fetched."""

import os
import re
from urllib.parse import urlparse  # noqa: F401 packages import it from here

__all__ = ["HASH_REGEX", "get_dir", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_folder = None


def get_dir():
    """The folder: that of set_dir(), else hub under TORCH_HOME, else under the user's cache folder."""
    if _folder is not None:
        return _folder
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")), "hub")


def set_dir(d):
    """Chooses another folder."""
    global _folder
    _folder = os.path.expanduser(d)
