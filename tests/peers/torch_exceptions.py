# SPDX-License-Identifier: Apache-2.0
"""Differences from torch that are decisions, or torch's own. torch_ops.py counts them as skipped and
prints them with their reasons; one that no longer occurs fails.

Each: rows (a regular expression), kinds of difference (value error words gradient second
node), a regular expression in the report, the reason.
"""

DECISIONS = [
    # ---- what we have and torch has not ----
    ("silu_backward", "gradient", "not implemented", "torch has no second derivative of silu"),
    ("scatter_?|scatter_add_?", "gradient", "returned an invalid gradient",
     "torch has no gradient of a source that is larger than the index"),
    ("_?adaptive_avg_pool2d", "gradient", "non-zero size", "torch has no gradient of an empty result"),
    ("conv1d|conv2d|convolution", "error", "slow_conv_dilated", "torch has no dilation for integers"),
    ("nll_loss_nd|cross_entropy_loss", "gradient", "grad_input must be contiguous",
     "torch has no gradient for strided input of K-d losses"),
    ("binary_cross_entropy_with_logits", "gradient", "doesn't match the broadcast shape",
     "torch has no gradient when the input is broadcast"),
    ("scaled_dot_product_attention", "error gradient", "attn_mask should not be set when is_causal",
     "torch takes both for dense rows only"),
    ("native_layer_norm|native_batch_norm", "node", "NormBackward0, torch's None",
     "mean and rstd have gradients"),
    ("detach_", "error", "Can't detach views in-place", "the harness lays torch's tensors out as views"),
    ("lift_fresh", "node", "LiftFreshBackward0", "ours is the identity and makes no node"),
    ("celu_", "gradient", "In-place elu backward calculation is triggered with a negative slope",
     "torch's in-place form keeps the result, from which a negative alpha's slope is not known"),
    ("group_norm", "gradient", "tensor does not have a device",
     "torch has no gradient of a bias without a weight"),
    # ---- where torch is wrong ----
    ("var|std|var_mean", "gradient second", r"\(float64\[[\d,]*\], \[\]",
     "torch reduces over all for dim=[], but its gradient counts one element"),
    ("mse_loss|huber_loss", "gradient second", r"\((\w+\[[\d,]*\]), (?!\1)",
     "torch's gradient of a broadcast mean divides by the count of the argument"),
    ("slice", "error gradient", "cannot be represented as a SymInt",
     "torch refuses a start at the lowest integer"),
    ("split_with_sizes", "error", "sum exactly", "torch's sum of the sizes overflows"),
    ("expand|broadcast_to", "words", "integer multiplication overflow", "torch says less of a size below -1"),
    ("index", "error", "INTERNAL ASSERT", "torch asserts when every index is None"),
    ("index_put_?", "error", "undefined Tensor", "torch fails inside when every index is None"),
    ("index_select", "error", "INDICES element is out of DATA bounds",
     "torch raises either exception, by layout"),
    ("scaled_dot_product_attention", "error", "6 keys, but 7 values", "torch does not look"),
    ("mse_loss|smooth_l1_loss|l1_loss|nll_loss|nll_loss_nd|cross_entropy_loss|binary_cross_entropy.*|"
     "huber_loss|kl_div",
     "error", "is not a valid value for reduction", "torch's ops do not look, its Python does"),
    ("hardsigmoid_?", "gradient second", "gradient 0 at", "torch's 1/6 is a float32 in float64 too"),
    ("celu_?", "gradient second", r"1\.7\).*gradient 0 at", "torch's 1/alpha is a float32 in float64 too"),
    # ---- ours by decision ----
    ("pad", "error words", "'reflect'", "modes other than constant are nn.functional's, of index_select"),
    ("clone", "error", "memory_format", "memory formats are contiguous and preserve"),
    ("expand|broadcast_to|unsqueeze|unflatten|meshgrid", "error words", "at most 16|more than 16 dimensions",
     "tensors have 16 dimensions at most"),
    ("mm|index_put", "error", "not implemented for '(Half|BFloat16)'",
     "half precision is for storage and conversion"),
    ("native_batch_norm", "value", "result [12] is",
     "evaluation gives the statistics that it used, torch empty tensors"),
    ("native_dropout", "value", "result 1 is .'bool'", "the mask of an empty tensor is bool too"),
    ("scatter_?|scatter_add_?", "error", "as src tensor; torch IndexError",
     "torch asks for the size of a dimension that src has not, before it compares"),
    # ---- nodes ----
    ("reshape", "node", "torch's ReshapeAliasBackward0", "reshape of what can be viewed is view"),
    ("movedim|moveaxis", "node", "torch's AliasBackward0", "movedim is permute for numbers too"),
    ("matmul|linear", "node", "torch's (SqueezeBackward4|CloneBackward0|UnsafeViewBackward0|"
     "ViewBackward0|AddBackward0)", "fewer views: mm and bmm as they come"),
    ("scaled_dot_product_attention", "node", "torch's UnsafeViewBackward0",
     "one way for all layouts and sizes of heads; torch's other way is made of matmuls"),
    ("cross_entropy_loss", "node", "DivBackward0, torch's DivBackward1",
     "one row for division by tensor and number: Python's name"),
    ("cross_entropy_loss|nll_loss_nd", "node", "torch's NllLoss2DBackward0",
     "K-d losses are nll_loss of rows"),
    ("nll_loss_forward", "node", "NllLossBackward0, torch's None", "total_weight has the node too"),
    ("rms_norm", "node", "torch's CloneBackward0", "torch makes the result of strided input contiguous"),
    ("_foreach_norm", "node", "torch's ForeachNormBackward0", "each tensor's norm has a node of its own"),
    # ---- messages ----
    ("index", "words", "out of bounds for dimension 0|Dimension out of range",
     "torch numbers dimensions after its own transposition"),
    ("one_hot", "words", "zeros: Dimension", "torch makes the result before it looks"),
    ("convolution", "words", "non-positive dilation|format tag|primitive descriptor|"
     "Input type|allocate memory", "words of torch's libraries, by the way it takes"),
    ("max_pool2d_with_indices", "words", "without overflow", "torch's conversion speaks first"),
    ("_adaptive_avg_pool2d", "words", "overflow", "torch checks in adaptive_avg_pool2d"),
    ("native_dropout", "words", "bernoulli_", "torch's dropout says it before"),
]
