# SPDX-License-Identifier: Apache-2.0
"""libmindtorch against torch on one thread, in one run.

usage: torch_speed.py BENCH_RUNTIME [--ms MILLISECONDS] [--rounds N] [NAME...]

Each workload of bench/runtime_workloads.c is measured in turn: ours, torch's, ours, torch's ...; the best
of all rounds counts, because the machine may be shared. The ratio is torch's time by ours: above 1 we are
faster. Nothing here passes or fails by time; the goals are printed next to the ratios.
"""
import argparse
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

M = 1 << 20


TYPE = [torch.float32]  # of the tensors that rand() makes; main() sets it


def rand(*sizes):
    return torch.randn(*sizes).abs().to(TYPE[0])


def conv(inputs, weights, stride=1, padding=0):
    def make():
        x, w = rand(*inputs), rand(*weights)
        return lambda: F.conv2d(x, w, None, stride, padding)
    return make


def unary(function):
    def make():
        x = rand(M)
        return lambda: function(x)
    return make


def binary(function, *shapes):
    def make():
        a, b = (rand(*shape) for shape in shapes)
        return lambda: function(a, b)
    return make


def matmul(n):
    return binary(torch.matmul, (n, n), (n, n))


def of_matrix(function, *shape):
    def make():
        x = rand(*shape)
        return lambda: function(x)
    return make


def of_type(dtype, make):
    """The same workload with tensors of another type."""
    def made():
        TYPE[0] = dtype
        try:
            return make()
        finally:
            TYPE[0] = torch.float32
    return made


def of_steps(function):
    """Every second element of rows that are twice as long."""
    def make():
        x, y = rand(1024, 1024)[:, ::2], rand(1024, 1024)[:, ::2]
        return lambda: function(x, y)
    return make


def cell(kind, batch, inputs, hidden, gates):
    def make():
        x, h, c = rand(batch, inputs), rand(batch, hidden), rand(batch, hidden)
        w = [rand(gates * hidden, inputs), rand(gates * hidden, hidden), rand(gates * hidden), rand(gates * hidden)]
        return lambda: kind(x, (h, c) if gates == 4 else h, *w)
    return make


def conv_transpose(inputs, weights, stride, padding):
    def make():
        x, w = rand(*inputs), rand(*weights)
        return lambda: F.conv_transpose2d(x, w, None, stride, padding)
    return make


def interpolate_leaves(mode, sizes, out):
    def made():
        inputs = [rand(*sizes).requires_grad_()]
        align = None if mode == "nearest" else False
        return inputs, lambda: F.interpolate(inputs[0], out, mode=mode, align_corners=align)
    return made


def grid_leaves(mode, sizes, places):
    def made():
        inputs = [rand(*sizes).requires_grad_(), rand(*places).requires_grad_()]
        return inputs, lambda: F.grid_sample(*inputs, mode=mode, align_corners=False)
    return made


def batch_norm():
    x, parts = rand(8, 64, 56, 56), [rand(64) for _ in range(4)]
    return lambda: F.batch_norm(x, parts[2], parts[3], parts[0], parts[1], True, 0.1, 1e-5)


def sgd():
    x = torch.nn.Parameter(torch.rand(M))
    x.grad = torch.ones(M)
    return torch.optim.SGD([x], lr=1e-3, momentum=0.9).step


def forward_of(leaves):
    """The op alone."""
    def made():
        inputs, run = leaves()
        for x in inputs:
            x.requires_grad_(False)
        return run
    return made


def backward_of(leaves):
    """The op and its derivative."""
    def made():
        inputs, run = leaves()
        grad = torch.ones_like(run().detach())

        def step():
            run().backward(grad)
            for x in inputs:
                x.grad = None
        return step
    return made


def attention_leaves():
    inputs = [rand(1, 12, 1024, 64).requires_grad_() for _ in range(3)]
    return inputs, lambda: F.scaled_dot_product_attention(*inputs, None, 0.0, True)


def layer_norm_leaves():
    inputs = [rand(1024, 768).requires_grad_()]
    return inputs, lambda: F.layer_norm(inputs[0], [768])


def mlp(batch, *layers):
    def make():
        modules = []
        for i in range(len(layers) - 1):
            modules.append(torch.nn.Linear(layers[i], layers[i + 1]))
            if i + 2 < len(layers):
                modules.append(torch.nn.ReLU())
        model = torch.nn.Sequential(*modules)
        x, y = torch.randn(batch, layers[0]), torch.randint(0, layers[-1], (batch,))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

        def step():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return step
    return make


# name: (what torch does, the least ratio we want)
WORKLOADS = {
    "add_2x2": (binary(torch.add, (2, 2), (2, 2)), None),
    "add_1m": (binary(torch.add, (M,), (M,)), 0.9),
    "mul_1m": (binary(torch.mul, (M,), (M,)), 0.9),
    "div_1m": (binary(torch.div, (M,), (M,)), 0.9),
    "relu_1m": (unary(torch.relu), 0.9),
    "sqrt_1m": (unary(torch.sqrt), 0.9),
    "exp_1m": (unary(torch.exp), 0.9),
    "tanh_1m": (unary(torch.tanh), 0.9),
    "sigmoid_1m": (unary(torch.sigmoid), 0.9),
    "gelu_1m": (unary(F.gelu), 0.9),
    "gt_1m": (binary(torch.gt, (M,), (M,)), 0.9),
    "add_row_1m": (binary(torch.add, (1024, 1024), (1024,)), 0.9),
    "transposed_copy_1m": (of_matrix(lambda x: x.t().contiguous(), 1024, 1024), 0.9),
    "sum_1m": (unary(torch.sum), 0.9),
    "mean_1m": (unary(torch.mean), 0.9),
    "max_1m": (unary(torch.max), 0.9),
    "sum_dim0": (of_matrix(lambda x: x.sum(0), 1024, 1024), 0.9),
    "sum_dim1": (of_matrix(lambda x: x.sum(1), 1024, 1024), 0.9),
    "argmax_dim1": (of_matrix(lambda x: x.argmax(1), 1024, 1024), 0.9),
    "matmul_64": (matmul(64), 0.95),
    "matmul_128": (matmul(128), 0.95),
    "matmul_256": (matmul(256), 0.95),
    "matmul_512": (matmul(512), 0.95),
    "matmul_1024": (matmul(1024), 0.95),
    "conv_7x7_3_64": (conv((4, 3, 224, 224), (64, 3, 7, 7), 2, 3), 0.7),
    "conv_3x3_28": (conv((4, 64, 28, 28), (64, 64, 3, 3), 1, 1), 0.7),
    "conv_3x3_64": (conv((4, 64, 56, 56), (64, 64, 3, 3), 1, 1), 0.7),
    "conv_3x3_128": (conv((4, 128, 28, 28), (128, 128, 3, 3), 1, 1), 0.7),
    "conv_3x3_256": (conv((4, 256, 14, 14), (256, 256, 3, 3), 1, 1), 0.7),
    "conv_3x3_512": (conv((4, 512, 7, 7), (512, 512, 3, 3), 1, 1), 0.7),
    "conv_1x1_256_64": (conv((4, 256, 56, 56), (64, 256, 1, 1)), 0.7),
    "softmax_gpt": (of_matrix(lambda x: torch.softmax(x, 1), 1536, 1024), 0.8),
    "layer_norm_gpt": (forward_of(layer_norm_leaves), 0.8),
    "layer_norm_gpt_backward": (backward_of(layer_norm_leaves), 0.8),
    "attention_gpt": (forward_of(attention_leaves), 0.8),
    "attention_gpt_backward": (backward_of(attention_leaves), 0.8),
    "mlp_small_32": (mlp(32, 64, 64, 64, 10), 1.5),
    "mlp_small_1024": (mlp(1024, 64, 64, 64, 10), 0.95),
    "mlp_mnist_32": (mlp(32, 784, 128, 128, 10), 1.5),
    "mlp_mnist_1024": (mlp(1024, 784, 128, 128, 10), 0.95),
    "float_to_f16": (unary(lambda x: x.to(torch.float16)), 1.0),
    "float_to_bf16": (unary(lambda x: x.to(torch.bfloat16)), 1.0),
    "f16_to_float": (of_type(torch.float16, unary(lambda x: x.to(torch.float32))), 1.0),
    "bf16_to_float": (of_type(torch.bfloat16, unary(lambda x: x.to(torch.float32))), 1.0),
    "flip_1m": (of_matrix(lambda x: x.flip(1), 1024, 1024), 1.0),
    "flip_dim0": (of_matrix(lambda x: x.flip(0), 1024, 1024), 1.0),
    "roll_1m": (of_matrix(lambda x: x.roll(100, 1), 1024, 1024), 1.0),
    "slice_step2": (of_steps(lambda x, y: x.contiguous()), 1.0),
    "add_step2": (of_steps(torch.add), 1.0),
    "cumsum_dim1": (of_matrix(lambda x: x.cumsum(1), 1024, 1024), 1.0),
    "pow_tensor": (binary(torch.pow, (M,), (M,)), 1.0),
    "pow_2": (unary(lambda x: x.pow(2)), 1.0),
    "pow_3": (unary(lambda x: x.pow(3)), 1.0),
    "pow_1.7": (unary(lambda x: x.pow(1.7)), 1.0),
    "log_1m": (unary(torch.log), 1.0),
    "sin_1m": (unary(torch.sin), 1.0),
    "silu_1m": (unary(F.silu), 1.0),
    "sum_columns_64": (of_matrix(lambda x: x.sum(0), 16384, 64), 1.0),
    "mean_dim0": (of_matrix(lambda x: x.mean(0), 1024, 1024), 1.0),
    "amax_dim0": (of_matrix(lambda x: x.amax(0), 1024, 1024), 1.0),
    "sum_channels": (of_matrix(lambda x: x.sum((0, 2, 3)), 8, 64, 56, 56), 1.0),
    "var_dim1": (of_matrix(lambda x: x.var(1), 1024, 1024), 1.0),
    "lstm_cell": (cell(torch.lstm_cell, 32, 128, 256, 4), 1.0),
    "lstm_cell_small": (cell(torch.lstm_cell, 8, 32, 64, 4), 1.0),
    "gru_cell": (cell(torch.gru_cell, 32, 128, 256, 3), 1.0),
    "conv_transpose_4x4": (conv_transpose((4, 64, 28, 28), (64, 32, 4, 4), 2, 1), 1.0),
    "conv_transpose_3x3": (conv_transpose((4, 64, 28, 28), (64, 64, 3, 3), 1, 1), 1.0),
    "batch_norm": (batch_norm, 1.0),
    "max_pool_2x2": (of_matrix(lambda x: F.max_pool2d(x, 2), 8, 64, 56, 56), 1.0),
    "interpolate_nearest": (forward_of(interpolate_leaves("nearest", (4, 16, 64, 64), 128)), 1.0),
    "interpolate_bilinear": (forward_of(interpolate_leaves("bilinear", (4, 16, 64, 64), 128)), 1.0),
    "interpolate_bilinear_backward": (backward_of(interpolate_leaves("bilinear", (4, 16, 64, 64), 128)), 1.0),
    "interpolate_bicubic": (forward_of(interpolate_leaves("bicubic", (4, 16, 64, 64), 128)), 1.0),
    "interpolate_linear": (forward_of(interpolate_leaves("linear", (16, 64, 512), 1024)), 1.0),
    "interpolate_trilinear": (forward_of(interpolate_leaves("trilinear", (2, 8, 16, 32, 32), (32, 64, 64))), 1.0),
    "grid_sample_2d": (forward_of(grid_leaves("bilinear", (4, 16, 64, 64), (4, 64, 64, 2))), 1.0),
    "grid_sample_2d_nearest": (forward_of(grid_leaves("nearest", (4, 16, 64, 64), (4, 64, 64, 2))), 1.0),
    "grid_sample_2d_bicubic": (forward_of(grid_leaves("bicubic", (4, 16, 64, 64), (4, 64, 64, 2))), 1.0),
    "grid_sample_2d_backward": (backward_of(grid_leaves("bilinear", (4, 16, 64, 64), (4, 64, 64, 2))), 1.0),
    "grid_sample_3d": (forward_of(grid_leaves("bilinear", (2, 8, 16, 32, 32), (2, 16, 32, 32, 3))), 1.0),
    "fft_1024": (of_matrix(torch.fft.fft, 256, 1024), 1.0),
    "rfft_1024": (of_matrix(torch.fft.rfft, 256, 1024), 1.0),
    "rfft_1000": (of_matrix(torch.fft.rfft, 256, 1000), 1.0),
    "fft2_256": (of_matrix(torch.fft.fft2, 4, 256, 256), 1.0),
    "i0_1m": (unary(torch.i0), 1.0),
    "i0e_1m": (unary(torch.special.i0e), 1.0),
    "i1_1m": (unary(torch.special.i1), 1.0),
    "i1e_1m": (unary(torch.special.i1e), 1.0),
    "bessel_j0": (unary(torch.special.bessel_j0), 1.0),
    "bessel_j1": (unary(torch.special.bessel_j1), 1.0),
    "bessel_y0": (unary(torch.special.bessel_y0), 1.0),
    "bessel_y1": (unary(torch.special.bessel_y1), 1.0),
    "bessel_k0": (unary(torch.special.modified_bessel_k0), 1.0),
    "bessel_k1": (unary(torch.special.modified_bessel_k1), 1.0),
    "spherical_j0": (unary(torch.special.spherical_bessel_j0), 1.0),
    "lgamma_1m": (unary(torch.lgamma), 1.0),
    "digamma_1m": (unary(torch.digamma), 1.0),
    "erfinv_1m": (unary(torch.erfinv), 1.0),
    "erfc_1m": (unary(torch.erfc), 1.0),
    "sinh_1m": (unary(torch.sinh), 1.0),
    "asin_1m": (unary(torch.asin), 1.0),
    "atan_1m": (unary(torch.atan), 1.0),
    "atan2_1m": (binary(torch.atan2, (M,), (M,)), 1.0),
    "sgd_1m": (sgd, 1.0),
}

# Those of them that are measured in float16 and bfloat16 too.
HALVES = ("add_1m mul_1m div_1m relu_1m exp_1m tanh_1m sigmoid_1m gelu_1m gt_1m add_row_1m sum_1m mean_1m max_1m"
          " sum_dim0 sum_dim1 matmul_64 matmul_256 matmul_512 conv_3x3_28 softmax_gpt layer_norm_gpt").split()
for name in HALVES:
    WORKLOADS[f"{name}_f16"] = (of_type(torch.float16, WORKLOADS[name][0]), 1.0)
    WORKLOADS[f"{name}_bf16"] = (of_type(torch.bfloat16, WORKLOADS[name][0]), 1.0)


def measure(run, ms):
    """Best nanoseconds of boxes of about a millisecond."""
    run()
    run()
    n = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(n):
            run()
        if time.perf_counter_ns() - start > 1e6:
            break
        n *= 2
    best = float("inf")
    end = time.perf_counter_ns() + ms * 1e6
    while True:
        start = time.perf_counter_ns()
        for _ in range(n):
            run()
        now = time.perf_counter_ns()
        best = min(best, (now - start) / n)
        if now > end:
            return best


def text_of(ns):
    for unit, scale in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if ns < 1000 * scale:
            break
    return f"{ns / scale:8.2f} {unit}"


def main():
    parser = argparse.ArgumentParser(prog="torch_speed.py", description=__doc__.splitlines()[0])
    parser.add_argument("bench")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ms", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--below", type=float, help="show only workloads whose ratio is below this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, best of {options.rounds} rounds of {options.ms:g} ms")
    print(f"{'workload':30}{'ours':>12}{'torch':>13}{'ratio':>8}{'goal':>7}")
    missed = 0
    for name, (make, goal) in WORKLOADS.items():
        if options.names and not any(n in name for n in options.names):
            continue
        run = make()
        ours, theirs = float("inf"), float("inf")
        for _ in range(options.rounds):
            shown = subprocess.run([options.bench, "--one", name, str(options.ms)], check=True,
                                   capture_output=True, text=True).stdout
            ours = min(ours, float(shown))
            theirs = min(theirs, measure(run, options.ms))
        ratio = theirs / ours
        low = goal is not None and ratio < goal
        missed += low
        if options.below is not None and ratio >= options.below:
            continue
        print(f"{name:30}{text_of(ours):>12}{text_of(theirs):>13}{ratio:8.2f}"
              f"{'' if goal is None else f'{goal:7.2f}'}{'  below' if low else ''}", flush=True)
    print(f"{missed} below their goal" if missed else "all at their goals or above")
    print("1 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
