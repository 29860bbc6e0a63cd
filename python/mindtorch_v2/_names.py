# SPDX-License-Identifier: Apache-2.0
"""Which rows of the op table torch keeps away from its top level, and from Tensor.

A row that is named nowhere here is `torch.NAME` and, where its first parameter is self, `Tensor.NAME`:
a new row appears without more code. Rows of either set are reached by `_C.ops.NAME`.
"""

# Used by torch.nn.functional, or inside other ops.
_NN = frozenset("""
    adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d binary_cross_entropy cross_entropy_loss elu elu_ gelu
    glu hardsigmoid hardsigmoid_ hardswish hardswish_ mish_ hardtanh hardtanh_ huber_loss l1_loss leaky_relu
    leaky_relu_ lift_fresh linalg_vector_norm linear log_sigmoid log_sigmoid_forward max_pool2d_with_indices mish
    mse_loss nll_loss nll_loss_forward nll_loss_nd one_hot pad relu6 relu6_ scaled_dot_product_attention silu silu_
    smooth_l1_loss softplus _to_copy _unsafe_view alias numpy_T mT slice nonzero_numpy
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d col2im im2col max_pool3d_with_indices max_unpool2d
    max_unpool3d multi_margin_loss multilabel_margin_loss pad_sequence soft_margin_loss softshrink
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d _unique2 unique_dim
    fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
    fft_ifftshift
    fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn
""".split())

# Methods of Tensor alone.
_METHODS_ONLY = frozenset("""
    atan2_ copysign_ digamma_ erfinv_ fmod_ hypot_ igamma_ igammac_ lgamma_
    absolute_ divide_ multiply_ subtract_ true_divide_ add_ addcdiv_ addcmul_
    bernoulli_ bitwise_and_
    bitwise_not_ bitwise_or_ bitwise_xor_ contiguous copy_ div_ expand expand_as exponential_
    floor_divide_ index index_add_ item lerp_ masked_fill_ masked_scatter_ mul_ new_empty new_full
    new_ones new_zeros normal_ pow_ random_ remainder_ repeat reshape_as scatter_ scatter_add_ squeeze_
    sub_ sum_to_size t_ to transpose_ type_as unfold uniform_ unsqueeze_ view view_as
    arctan2_ bitwise_left_shift_ bitwise_right_shift_ float_power_ heaviside_ index_copy_ index_fill_
    index_reduce_ nextafter_ scatter_reduce_ sgn_ sign_
""".split())

# Functions alone, though their first parameter is called self.
_FUNCTIONS_ONLY = frozenset("""
    _log_softmax _softmax _standard_gamma _standard_gamma_grad poisson
    adaptive_avg_pool1d avg_pool1d binary_cross_entropy_with_logits empty_like
    full_like max_pool1d max_pool2d ones_like rand_like randn_like rsub var_mean zeros_like conv1d conv2d
    max_pool1d_with_indices group_norm rms_norm kl_div threshold threshold_ celu celu_ selu selu_ dropout_
    feature_dropout feature_dropout_ constant_pad_nd native_group_norm atleast_1d atleast_2d atleast_3d
    adaptive_max_pool1d alpha_dropout alpha_dropout_ channel_shuffle feature_alpha_dropout
    _fft_c2c _fft_c2r _fft_r2c complex polar view_as_complex view_as_real real imag
    feature_alpha_dropout_ hinge_embedding_loss max_pool3d pixel_shuffle pixel_unshuffle
    bucketize searchsorted trapezoid trapz cumulative_trapezoid
""".split())

# Functions in Python that take no tensor which could answer for them (__torch_function__).
NEVER_ASKING = frozenset("""
    broadcast_shapes is_storage is_tensor range logspace tril_indices triu_indices
""".split())

# Rows of torch.linalg, torch.special and of optimizers.
_ELSEWHERE = ("_fused_", "linalg_", "_linalg_", "_lu_", "special_")


def is_function(name):
    """Whether torch has it at its top level."""
    return (name not in _NN and name not in _METHODS_ONLY and not name.endswith("_backward")
            and not name.startswith(_ELSEWHERE) and "::" not in name and not name.startswith("__"))


def is_method(name):
    """Whether torch.Tensor has it."""
    return (name not in _NN and name not in _FUNCTIONS_ONLY and not name.endswith("_backward")
            and not name.endswith("_backward_data") and not name.startswith(_ELSEWHERE)
            and not name.startswith("_scaled") and not name.startswith("_adaptive")
            and name != "_local_scalar_dense")
