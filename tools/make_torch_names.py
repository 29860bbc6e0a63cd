#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/mindtorch_v2/_as_torch/names.py: the names that torch's modules have, asked of torch itself.

usage: make_torch_names.py [--check]

Runs with a Python that has torch (./dev peers makes one). --check: compares, and writes nothing.
"""
import importlib
import pathlib
import pkgutil
import sys
import textwrap
import types
import warnings

FILE = pathlib.Path(__file__).resolve().parent.parent / "python/mindtorch_v2/_as_torch/names.py"
# Private modules and names that packages import nevertheless.
PRIVATE_MODULES = """
    torch._C torch._C._distributed_c10d torch._dynamo torch._dynamo.config torch._inductor
    torch._inductor.config torch._functorch torch._functorch.config torch._tensor torch._utils torch._jit_internal
    torch._ops torch._vmap_internals torch._logging torch._subclasses torch._subclasses.fake_tensor
    torch._higher_order_ops torch._weights_only_unpickler torch._guards
    torch.utils._pytree torch.utils._contextlib torch.utils._python_dispatch torch.utils._foreach_utils
    torch.nn.modules._functions torch.cuda._memory_viz torch.distributed._tensor torch.fx._compatibility
    torch.distributed._composable torch.distributed._composable.fsdp torch.distributed._functional_collectives
    torch.fx.experimental.proxy_tensor torch.fx.experimental.symbolic_shapes
""".split()
PRIVATE_NAMES = {"torch.fx._symbolic_trace": ["Tracer"]}
# What no package of models or layers imports.
LEFT_OUT = ("torch.onnx.symbolic_", "torch.onnx.ops.", "torch.onnx.verification", "torch.distributed.elastic.",
            "torch.distributed.tensor.debug", "torch.distributed.tensor.examples", "torch.distributed.examples",
            "torch.distributed.benchmarks", "torch.distributed.launcher.", "torch.ao.pruning.scheduler",
            "torch.utils.hipify", "torch.utils.bottleneck", "torch.utils.model_dump", "torch.utils.benchmark.op_",
            "torch.utils.benchmark.examples", "torch.contrib", "torch.csrc", "torch.package.", "torch.export.pt2",
            "torch.fx.passes.tests", "torch.jit.mobile", "torch.jit.unsupported", "torch.jit.generate",
            "torch.distributed.launch", "torch.distributed.run", "torch.nativert", "torch.masked.maskedtensor.",
            "torch.ao.", "torch.fx.passes.", "torch.fx.experimental.", "torch.distributed.pipelining.",
            "torch.distributed.checkpoint.", "torch.quantization.", "torch.nn.qat.", "torch.nn.quantizable.",
            "torch.nn.quantized.", "torch.nn.intrinsic.", "torch.distributed.debug", "torch.utils.collect_env",
            "torch.utils.data.datapipes.", "torch.export.", "torch.distributed.tensor.experimental.",
            "torch.utils.jit.", "torch.distributed.tensor.", "torch.distributed.fsdp.", "torch.onnx.", "torch.mtia.", "torch.nested.",
            "torch.distributed.optim.", "torch.distributed.rpc.", "torch.distributed.algorithms.", "torch.fx.tensor_type",
            "torch.distributed.nn.", "torch.sparse.", "torch.utils.viz", "torch.utils.tensorboard.", "torch.fx.immutable",
            "torch.autograd.gradcheck.", "torch.fx.operator_schemas", "torch.utils.cpp_", "torch.utils.mkldnn", "torch.distributed.flight_recorder", "torch.cuda.tunable", "torch.jit.frontend", "torch.jit.annotations", "torch.jit.quantized")


def is_private(name):
    return any(part.startswith("_") for part in name.split("."))


def walk(paths, prefix):
    """Names of public modules."""
    for entry in pkgutil.iter_modules(paths, prefix):
        if is_private(entry.name) or entry.name.startswith(LEFT_OUT) or entry.name == "torch.version":
            continue
        yield entry.name
        if entry.ispkg:
            try:
                found = importlib.import_module(entry.name)
            except Exception:
                continue
            yield from walk(vars(found).get("__path__", []), entry.name + ".")


def own_names(module):
    """Public names of a module that are torch's."""
    listed = set(vars(module).get("__all__", ()))
    for name, value in vars(module).items():
        if isinstance(value, types.ModuleType) or not isinstance(name, str) or name.startswith("__"):
            continue
        if module.__name__ != "torch._C" and name.startswith("_"):
            continue
        owner = getattr(value, "__module__", None)
        if name in listed or (isinstance(owner, str) and owner.startswith("torch")):
            yield name
        elif owner is None and (name.isupper() or type(value).__module__.startswith("torch")):
            yield name  # constants, dtypes


def table():
    """(module, names) in order."""
    import torch
    modules = {"torch", *walk(torch.__path__, "torch."), *PRIVATE_MODULES, *PRIVATE_NAMES}
    for name in sorted(modules):
        try:
            module = importlib.import_module(name)
        except Exception:
            continue
        names = sorted({*own_names(module), *PRIVATE_NAMES.get(name, ())})
        if name == "torch._C":
            names = [n for n in names if not n.startswith("_")]
        yield name, names


def text():
    """The file."""
    import torch
    words = []
    for name, names in table():
        words += [name.removeprefix("torch").removeprefix(".") + ":", *names]
    lines = textwrap.fill(" ".join(words), 120, break_on_hyphens=False, break_long_words=False)
    version = torch.__version__.split("+")[0]
    return ('# SPDX-License-Identifier: Apache-2.0\n'
            f'"""The names that torch {version} has, after each module\'s (NAME:); by tools/make_torch_names.py."""\n\n'
            'NAMES = """\\\n' + lines + '\n"""\n')


def main():
    warnings.simplefilter("ignore")
    made = text()
    if "--check" in sys.argv[1:]:
        same = FILE.read_text() == made
        print(f"{FILE.name}: {'as torch has them' if same else 'not as torch has them: run tools/make_torch_names.py'}")
        return 0 if same else 1
    FILE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
