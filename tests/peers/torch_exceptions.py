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
    ("(a|arc)(sinh|cosh|tanh)_", "gradient", "'inplace version of a", "torch has no derivative of the in-place form"),
    ("ldexp", "gradient", r"int64\[3\].*gradient 0 at", "torch takes 2 to a negative integer as the integer 0"),
    ("index_(copy|fill|reduce)_?", "error", "out of bounds", "scatter's exception: the kernel is the same"),
    ("hardsigmoid_?", "gradient second", "gradient 0 at", "torch's 1/6 is a float32 in float64 too"),
    ("celu_?", "gradient second", r"1\.7\).*gradient 0 at", "torch's 1/alpha is a float32 in float64 too"),
    # ---- ours by decision ----
    ("pad", "error words", "'reflect'", "modes other than constant are nn.functional's, of index_select"),
    ("clone", "error", "memory_format", "memory formats are contiguous and preserve"),
    ("expand|broadcast_to|unsqueeze|unflatten|meshgrid", "error words", "at most 16|more than 16 dimensions",
     "tensors have 16 dimensions at most"),
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

# The same for torch_ops.py --half.
HALVES = [
    ("group_norm|native_batch_norm(_backward)?|layer_norm|addcdiv_|conv.*|_fused_rmsprop_|cross_entropy_loss|"
     "grid_sampler.*",
     "value gradient", "float16 case .* at ", "torch rounds what it has on the way; the error here is not larger"),
    ("var|std|var_mean", "gradient", r"\[\], True", "torch reduces over all for dim=[], but its gradient counts one "
     "element"),
    (".*", "error gradient", "raised nothing; torch NotImplementedError: .* not implemented for '(Half|BFloat16)'",
     "torch has no half types there"),
    ("ldexp", "value", "result is", "the power of two is float32, and decides"),
    ("float_power_", "gradient", "requires dtype Double", "both refuse a base that is not float64"),
    ("signbit", "value", "bfloat16", "NumPy's numbers on the way lose the sign of a NaN"),
    ("mkldnn_rnn_layer(_backward)?", "error value", "", "our fused layer; torch's takes other arguments"),
    ("_scaled_dot_product_flash_attention_for_cpu", "value", "result 1 is",
     "the logarithm of the sum is float32; torch's is either, by the processor"),
]

# The same for torch_extremes.py: rows, a regular expression in the report, the reason.
_SUMS = ("sum|mean|var|std|var_mean|norm|linalg_vector_norm|cumsum|prod.*|.*loss.*|binary_cross_entropy.*|kl_div|"
         ".*mm|mv|dot|matmul|linear|outer|conv.*|.*pool.*|.*norm.*|.*attention.*|.*softmax.*|cosine_similarity|"
         "allclose|embedding.*|index_add_?|scatter_add_?|sum_to_size|logsumexp|cumprod")
EXTREMES = [
    # ---- decisions ----
    ("index_add_?", r"^shapes (empty|size).*out of bounds", "torch does not look at indices where self is empty"),
    ("batch_norm", r"^types.*expect parameter to have", "torch takes running statistics of integers"),
    ("convolution", r"^types.*bias type", "torch's inner op does not compare the bias's type"),
    ("conv.*", r"^shapes size \d as 0.*(kernel size should be greater than zero|torch's)",
     "torch forgets the output channels of empty input, and takes kernels of size 0 there"),
    ("addmm", r"^shapes size.*can't be cast", "torch multiplies by beta alone where there is nothing to add"),
    ("scaled_dot_product_attention", r"^shapes (empty at|size \d as 0|0-d at 3)",
     "torch does not compare the batches of empty tensors, and broadcasts masks in fewer ways"),
    ("adaptive_max_pool2d", r"^shapes.*non-zero size", "torch does not look at the channels of one image"),
    ("isclose|allclose", r"values .*int(32|64)", "torch's differences of integers wrap around, ours do not"),
    ("feature_dropout_?", r"^shapes all 0-d", "torch drops all before it looks at the dimensions"),
    ("binary_cross_entropy(_with_logits)?", r"^shapes 0-d at 0",
     "torch writes into a tensor of the input's shape; nn.functional compares shapes before"),
    ("binary_cross_entropy_with_logits", r"^types.*('float32', \(3, 4\)\)|bool\[4\]|uint8\[4\])",
     "torch's loss has the target's type, and 1 is subtracted from pos_weight in its own type"),
    # ---- torch has no gradient, or a wrong one ----
    ("embedding(_dense)?_backward", r"cannot reshape tensor of 0 elements", "torch has no gradient without indices"),
    ("kl_div", r"^gradient.*gradient 1.*torch's np.float64\(nan\)",
     "torch's gradient by a target of 0 is NaN; ours leaves its entropy out there"),
    ("binary_cross_entropy(_backward)?", r"float64", "torch's 1e-12 is a float32 in float64 too"),
    ("var|std|var_mean", r"^gradient.*\(float32\[[\d,]*\], \[\]",
     "torch reduces over all for dim=[], but its gradient counts one element"),
    ("prod(.dim_int)?", r"^gradient.*(special|mixed)",
     "torch divides the product by each element, ours multiplies the others: NaN and infinities differ"),
    ("smooth_l1_loss(_backward)?", r"(beta=|, )0.0\)", "torch's op divides NaN by a beta of 0; nn.functional takes l1_loss"),
    ("addcdiv_?", r"^gradient.*(ends|subnormal|mixed|any).*float64",
     "torch squares the divisor, which overflows; ours does not"),
    ("topk|sort", r"^gradient", "of equal numbers any may be taken"),
    ("cumprod", r"^gradient.*(special|mixed|ends)", "torch divides running products by each element where it can"),
    ("hardtanh_?|relu6_?", r"^gradient.*(special|mixed|any)",
     "at NaN torch's vector loop gives 0 and the rest of its loop the gradient"),
    (".*norm", r"^gradient.*subnormal.*float64.*torch's np.float64\(nan\)",
     "torch raises elements and norm to powers by themselves, which underflow"),
    ("batch_norm", r"^shapes.*index 0 out of range", "torch asks for the first of no channels"),
    # ---- which way numbers are added up and multiplied, when they are near the end of the type ----
    (_SUMS, r"(ends|mixed|any).*(inf|nan)",
     "partial sums and products overflow, in another order in each library"),
    ("conv.*|.*mm|linear|matmul|mv|dot|native_batch_norm_backward", r"large.*(inf|nan)",
     "products of large numbers overflow, and their sums are infinite or NaN by their order"),
    (".*", r"^gradient.*(ends|subnormal|mixed|any).*(inf|nan)", "formulas overflow at another place"),
    ("(r?sub|subtract|add|sum)_?", r"values .*(ends|mixed|any).*alpha", "alpha times the operand overflows unless it is fused"),
    ("native_batch_norm_backward", r"values any.*is np.float64\(-?0.0\)",
     "weight / deviation is one number in ours, and may be too small for a float (some seeds)"),
    (".*norm.*", r"special.*(inf|nan)",
     "infinite input: torch keeps running means, or folds mean and scale into one product"),
    (".*norm.*", r"^gradient.*large.*(inf|nan)", "weight times distance from the mean overflows"),
    ("var|std|var_mean", r"broadcast.*is np.float64\(0.0\)", "equal elements have a variance of 0, exactly"),
    ("var_mean", r"special.*result 1 .*(inf|nan)", "torch keeps a running mean, which infinities turn into NaN"),
    ("_fused_.*", r"(special|mixed|any|ends).*(inf|nan)",
     "NaN and infinite state: torch's vector loop and the rest of its loop differ, and add up in another order"),
    (".*attention.*", r"(special|large).*(inf|nan)",
     "infinite scores have no softmax; torch's and its twin of simple ops give NaN or 0"),
    (".*_norm", r"^gradient of values .*(any|mean|mixed|large|special)",
     "the gradient of two elements is 0, and the rounding of a large mean shows beside it"),
    (".*attention.*", r"^gradient of values .*(any|mean|mixed|large|ends)",
     "differences of values with a large mean, whose weights are 0 or 1 but for rounding"),
    ("_fused_.*", r"mean.*float32", "differences of a large mean: float32 keeps a digit"),
    ("gelu_backward|logaddexp", r"is np.float64\(-?[\d.]+(e-\d+)?\), torch's np.float64\(-?[\d.]+(e-\d+)?\)",
     "the result passes 0, where its terms cancel"),
    ("cosine_similarity", r"ends.*float64", "torch's squares overflow, also that of one element"),
    ("conv.*", r"special.*(inf|nan)", "an infinite weight over padding: torch multiplies it by the zeros there"),
    ("fmod_?|remainder_?", r"(subnormal|mixed|any).*nan", "torch's vector loop gives NaN for subnormal divisors (some seeds)"),
    ("maximum|minimum|cl(am|i)p.*|max.other|min.other|lerp_?", r"is np.float64\(-?0.0\), torch's np.float64\(-?0.0\)",
     "the sign of the larger of two zeros, or of a fused product"),
]
