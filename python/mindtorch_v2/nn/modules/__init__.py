# SPDX-License-Identifier: Apache-2.0
"""All modules."""

from .activation import *  # noqa: F403
from .activation import __all__ as _activation
from .attention import MultiheadAttention
from .batchnorm import BatchNorm1d, BatchNorm2d
from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import *  # noqa: F403
from .conv import __all__ as _conv
from .dropout import Dropout, Dropout1d, Dropout2d
from .flatten import Flatten, Unflatten
from .linear import Bilinear, Identity, Linear
from .loss import *  # noqa: F403
from .loss import __all__ as _loss
from .misc import *  # noqa: F403
from .misc import __all__ as _misc
from .module import Module
from .normalization import GroupNorm, LayerNorm, RMSNorm
from .pooling import *  # noqa: F403
from .pooling import __all__ as _pooling
from .rnn import *  # noqa: F403
from .rnn import __all__ as _rnn
from .sparse import Embedding
from .transformer import TransformerEncoder, TransformerEncoderLayer
from .upsampling import *  # noqa: F403
from .upsampling import __all__ as _upsampling

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "Bilinear", "Dropout", "Dropout1d", "Dropout2d",
    "Embedding",
    "Flatten", "GroupNorm", "Identity", "LayerNorm", "Linear", "Module", "ModuleDict", "ModuleList",
    "MultiheadAttention", "ParameterDict", "ParameterList", "RMSNorm", "Sequential", "TransformerEncoder",
    "TransformerEncoderLayer", "Unflatten", *_activation, *_loss, *_misc, *_pooling,
    *_conv, *_rnn, *_upsampling,
]  # fmt: skip
