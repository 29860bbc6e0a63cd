# SPDX-License-Identifier: Apache-2.0
"""torch.hub: the folder where models are kept. Nothing is fetched."""

import os
import re
from urllib.parse import urlparse  # noqa: F401 packages import it from here

__all__ = ["HASH_REGEX", "get_dir", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_folder = None


def _get_torch_home():
    """TORCH_HOME, else torch in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.expanduser(os.environ.get("TORCH_HOME") or os.path.join(cache, "torch"))


def get_dir():
    """The folder: that of set_dir(), else hub in torch's home."""
    return _folder if _folder is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Chooses another folder."""
    global _folder
    _folder = os.path.expanduser(d)
