# SPDX-License-Identifier: Apache-2.0
"""All modules."""

from .activation import *  # noqa: F403
from .activation import __all__ as _activation
from .adaptive import AdaptiveLogSoftmaxWithLoss
from .attention import MultiheadAttention
from .batchnorm import *  # noqa: F403
from .batchnorm import __all__ as _batchnorm
from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import *  # noqa: F403
from .conv import __all__ as _conv
from .dropout import *  # noqa: F403
from .dropout import __all__ as _dropout
from .flatten import Flatten, Unflatten
from .instancenorm import *  # noqa: F403
from .instancenorm import __all__ as _instancenorm
from .lazy import *  # noqa: F403
from .lazy import __all__ as _lazy
from .linear import Bilinear, Identity, Linear
from .loss import *  # noqa: F403
from .loss import __all__ as _loss
from .margin_loss import *  # noqa: F403
from .margin_loss import __all__ as _margin_loss
from .misc import *  # noqa: F403
from .misc import __all__ as _misc
from .module import Module
from .normalization import GroupNorm, LayerNorm, RMSNorm
from .padding import *  # noqa: F403
from .padding import __all__ as _padding
from .pooling import *  # noqa: F403
from .pooling import __all__ as _pooling
from .pooling_more import *  # noqa: F403
from .pooling_more import __all__ as _pooling_more
from .rnn import *  # noqa: F403
from .rnn import __all__ as _rnn
from .sparse import Embedding, EmbeddingBag
from .transformer import *  # noqa: F403
from .transformer import __all__ as _transformer
from .upsampling import *  # noqa: F403
from .upsampling import __all__ as _upsampling

__all__ = [
    "AdaptiveLogSoftmaxWithLoss", "Bilinear", "Embedding", "EmbeddingBag", "Flatten", "GroupNorm", "Identity",
    "LayerNorm", "Linear", "Module", "ModuleDict", "ModuleList", "MultiheadAttention", "ParameterDict",
    "ParameterList", "RMSNorm", "Sequential", "Unflatten",
    *_activation, *_batchnorm, *_conv, *_dropout, *_instancenorm, *_lazy, *_loss, *_margin_loss, *_misc,
    *_padding, *_pooling, *_pooling_more, *_rnn, *_transformer, *_upsampling,
]  # fmt: skip
