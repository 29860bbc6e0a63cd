#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/mindtorch_v2/_as_torch/names.py: the names that torch's modules have, asked of torch itself.

usage: make_torch_names.py

Runs with a Python that has torch (./dev peers makes one).
"""
import importlib
import pathlib
import pkgutil
import sys
import textwrap
import types
import warnings

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "python/mindtorch_v2/_as_torch"
# Private modules and names that packages import nevertheless.
PRIVATE_MODULES = """
    torch._C torch._C._distributed_c10d torch._dynamo torch._dynamo.config torch._inductor torch._tensor_str
    torch._inductor.config torch._functorch torch._functorch.config torch._tensor torch._utils torch._jit_internal
    torch._ops torch._vmap_internals torch._logging torch._subclasses torch._subclasses.fake_tensor
    torch._higher_order_ops torch._weights_only_unpickler torch._guards torch.utils._pytree torch.utils._contextlib
    torch.utils._python_dispatch torch.utils._foreach_utils torch.nn.modules._functions torch.cuda._memory_viz
    torch.distributed._tensor torch.fx._compatibility torch.distributed._composable
    torch.distributed._composable.fsdp torch.distributed._functional_collectives
    torch.fx.experimental.proxy_tensor torch.fx.experimental.symbolic_shapes torch.distributed.tensor._utils
    torch.distributed._tensor.experimental torch.distributed.algorithms._checkpoint.checkpoint_wrapper
    torch.distributed.tensor.experimental._attention torch.fx.passes.infra.pass_base torch.onnx.symbolic_helper
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
    torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook torch.ao.quantization.fx._decomposed
""".split()
PRIVATE_NAMES = {
    "torch": ["_assert"], "torch.fx._symbolic_trace": ["Tracer"], "torch._C": ["_TensorMeta"],
    "torch._C._distributed_rpc": ["_is_current_rpc_agent_set"], "torch.export._trace": [],
    "torch._dynamo._trace_wrapped_higher_order_op": ["TransformGetItemToIndex"],
    "torch._dynamo.eval_frame": ["is_dynamo_supported"], "torch._dynamo.exc": ["TensorifyScalarRestartAnalysis"],
    "torch._higher_order_ops.associative_scan": ["associative_scan"], "torch._inductor.cpu_vec_isa": ["pick_vec_isa"],
    "torch._inductor.runtime.cache_dir_utils": ["cache_dir"], "torch._prims_common": ["is_contiguous_or_false"],
    "torch._tensor_str": ["_tensor_str"], "torch.backends.cuda": ["SDPAParams", "can_use_flash_attention"],
    "torch.distributed.checkpoint._consolidate_hf_safetensors": ["consolidate_safetensors_files"],
    "torch.distributed.checkpoint.format_utils": ["_EmptyStateDictLoadPlanner"],
    "torch.distributed.checkpoint.state_dict_loader": ["_load_state_dict"],
    "torch.distributed.distributed_c10d": ["_get_default_group"], "torch.distributed.fsdp.wrap": ["_or_policy"],
    "torch.distributed.tensor.placement_types": ["_StridedShard"], "torch.distributed.utils": ["_sync_module_states"],
    "torch.hub": ["_get_torch_home"], "torch.nn.attention.flex_attention": ["_DEFAULT_SPARSE_BLOCK_SIZE"],
    "torch.nn.init": ["_calculate_correct_fan"], "torch.nn.modules.instancenorm": ["_InstanceNorm"],
    "torch.nn.modules.transformer": ["_get_activation_fn"], "torch.nn.modules.utils": ["_pair"],
    "torch.optim.optimizer": ["ParamsT", "_default_to_fused_or_foreach", "_get_capturable_supported_devices",
                              "_use_grad_for_differentiable"],
    "torch.onnx.symbolic_opset9": ["masked_fill", "softmax"], "torch.onnx.symbolic_opset12": [],
    "torch.utils._pytree": ["_get_node_type"], "torch.utils._sympy.numbers": ["IntInfinity"],
    "torch.utils._sympy.value_ranges": ["ValueRanges"], "torch.utils.cpp_extension": ["load"],
    "torch.utils.data.datapipes.iter": ["Batcher"],
    "torch.utils.data.datapipes.iter.combinatorics": ["ShufflerIterDataPipe"],
    "torch.export.decomp_utils": ["CustomDecompTable"], "torch.autograd": ["_disable_profiler"],
    "torch.utils.data.dataloader": ["_BaseDataLoaderIter", "_DatasetKind", "_collate_fn_t"],
    "torch.utils.data._utils.worker": ["_generate_state", "_worker_info"], "torch.utils._triton": ["has_triton"],
    "torch.nn.utils._per_sample_grad": ["call_for_per_sample_grads"],
    "torch.nn.utils._named_member_accessor": ["NamedMemberAccessor", "swap_tensor"],
    "torch.nested._internal.nested_tensor": ["NestedTensor", "_tensor_symint_registry"],
    "torch.nested._internal.ops": ["extract_kwargs"], "torch.jit": ["_get_trace_graph"],
    "torch._jit_internal": ["_copy_to_script_wrapper"],
    "torch.fx.passes.shape_prop": ["ShapeProp"], "torch.jit._recursive": ["concrete_type_store"],
    "torch.ao.quantization": ["FakeQuantizeBase", "ObserverBase"],
    "torch.distributed.pipelining.microbatch": ["TensorChunkSpec"],
    "torch.utils._foreach_utils": ["_group_tensors_by_device_and_dtype"],
}
# Modules of which only the names above are kept.
ONLY_THESE = ("torch._dynamo.", "torch._inductor.", "torch._prims_common", "torch.onnx.symbolic_", "torch.export._trace",
              "torch._C._distributed_rpc", "torch.fx._symbolic_trace", "torch.utils._sympy", "torch.utils.cpp_extension",
              "torch._higher_order_ops.", "torch.ao.quantization", "torch.utils.data.datapipes.",
              "torch.utils.data._utils", "torch.utils._triton", "torch.nested._internal", "torch.fx.passes.shape_prop",
              "torch.jit._recursive", "torch.distributed.pipelining.")
# What no package of models or layers imports.
LEFT_OUT = ("torch.onnx.symbolic_", "torch.onnx.ops.", "torch.onnx.verification", 
            "torch.distributed.tensor.debug", "torch.distributed.tensor.examples", "torch.distributed.examples",
            "torch.distributed.benchmarks",  "torch.ao.pruning.scheduler",
            "torch.utils.hipify", "torch.utils.bottleneck", "torch.utils.model_dump", "torch.utils.benchmark.op_",
            "torch.utils.benchmark.examples", "torch.contrib", "torch.csrc", "torch.package.", "torch.export.pt2",
            "torch.fx.passes.tests", "torch.jit.mobile", "torch.jit.unsupported", "torch.jit.generate",
            "torch.nativert", "torch.masked.maskedtensor.",
            "torch.ao.", "torch.fx.passes.", "torch.fx.experimental.", "torch.distributed.pipelining.",
            "torch.quantization.", "torch.nn.qat.", "torch.nn.quantizable.",
            "torch.nn.quantized.", "torch.nn.intrinsic.", "torch.distributed.debug", "torch.utils.collect_env",
            "torch.utils.data.datapipes.", "torch.export.", "torch.distributed.tensor.experimental.",
            "torch.utils.jit.", "torch.onnx.", "torch.mtia.", "torch.nested.",
            "torch.distributed.optim.", "torch.distributed.rpc.", "torch.fx.tensor_type",
            "torch.sparse.", "torch.utils.viz", "torch.utils.tensorboard.", "torch.fx.immutable",
            "torch.autograd.gradcheck.", "torch.fx.operator_schemas", "torch.utils.cpp_", "torch.utils.mkldnn", "torch.distributed.flight_recorder", "torch.cuda.tunable", "torch.jit.quantized")


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
        own = () if name.startswith(ONLY_THESE) else own_names(module)
        names = sorted({*own, *PRIVATE_NAMES.get(name, ())})
        if name == "torch._C":
            names = [n for n in names if not n.startswith("_")]
        yield name, names


def texts():
    """The files by name."""
    import torch
    words = {"names.py": [], "names_distributed.py": []}
    for name, names in table():
        file = "names_distributed.py" if name.startswith("torch.distributed.") else "names.py"
        words[file] += [name.removeprefix("torch").removeprefix(".") + ":", *names]
    version = torch.__version__.split("+")[0]
    for file, each in words.items():
        lines = textwrap.fill(" ".join(each), 120, break_on_hyphens=False, break_long_words=False)
        yield file, ('# SPDX-License-Identifier: Apache-2.0\n'
                     f'"""The names that torch {version} has, after each module\'s (NAME:); by '
                     'tools/make_torch_names.py."""\n\n'
                     'NAMES = """\\\n' + lines + '\n"""\n')


def main():
    warnings.simplefilter("ignore")
    for file, made in texts():
        (FOLDER / file).write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
