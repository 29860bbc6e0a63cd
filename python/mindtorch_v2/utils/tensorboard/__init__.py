# SPDX-License-Identifier: Apache-2.0
"""torch.utils.tensorboard: SummaryWriter through the package tensorboard, which must be installed.

It writes event files of scalars, histograms, images, texts, hyperparameters and figures; graphs, meshes, media and
embeddings are not there, and say so.
"""

try:
    import tensorboard as _tensorboard  # noqa: F401
except ImportError as _error:
    raise ImportError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard") from _error

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
