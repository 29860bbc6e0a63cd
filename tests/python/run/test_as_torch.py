# SPDX-License-Identifier: Apache-2.0
"""mindtorch_v2 in torch's place: what `import torch` gives, what is missing, and programs that nobody changed."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support_run import PYTHON, RunTest  # noqa: E402

IN_PLACE = [*PYTHON, "-m", "mindtorch_v2"]


class Place(RunTest):
    """Programs that say what they find: each is an assertion of its own, run in a fresh process."""

    def check(self, text, *prefix):
        """Runs statements of a program that imports torch."""
        self.write("program.py", text)
        status, output, errors = self.execute(*(prefix or IN_PLACE), "program.py")
        self.assertEqual((status, errors), (0, ""), output)
        return output

    def test_modules_are_ours_and_the_same_objects(self):
        self.check("""
            import torch, torch.nn.functional as F, torch.utils.data, torch.optim.lr_scheduler
            from torch import nn, optim
            from torch.nn.modules.linear import Linear
            from torch.utils.data import DataLoader
            import mindtorch_v2 as ours
            assert torch.torch is torch is ours and nn is ours.nn and F is ours.nn.functional and optim is ours.optim
            assert Linear is ours.nn.Linear and DataLoader is ours.utils.data.DataLoader
            assert nn.__name__ == nn.__spec__.name == "mindtorch_v2.nn"
            assert optim.lr_scheduler is ours.optim.lr_scheduler
            """)

    def test_a_function_is_not_replaced_by_its_module(self):
        self.check("""
            import torch
            from torch.autograd.gradcheck import gradcheck
            assert torch.autograd.gradcheck is gradcheck and callable(gradcheck)
            """)

    def test_versions(self):
        self.check("""
            import importlib.metadata, importlib.util
            assert importlib.metadata.version("torch").startswith("2.")
            import torch
            v = torch.__version__
            assert v >= "2.1" and v >= (2, 1) and v < (3,) and not v < "2.9.1" and v == importlib.metadata.version("torch")
            assert v != "1.13" and v > "2.2" and v <= "99"
            assert isinstance(v, str) and int(v.split(".")[0]) == 2 and torch.version.__version__ == v
            assert torch.version.cuda is None and importlib.util.find_spec("torch") is not None
            assert importlib.metadata.metadata("torch")["Name"] == "torch"
            """)

    def test_what_is_missing_fails_at_its_use_with_its_name(self):
        self.check("""
            import typing
            import torch, torch.distributed.fsdp, torch.onnx
            from torch.fx import GraphModule, symbolic_trace
            class Tracer(torch.fx.Tracer):
                pass
            def f(graph: typing.Optional[GraphModule], other: GraphModule | None = None) -> "GraphModule": ...
            typing.get_type_hints(f)
            assert not isinstance(torch.nn.Linear(1, 1), GraphModule) and {GraphModule: 1}[GraphModule] == 1
            def message(call):
                try:
                    call()
                except NotImplementedError as error:
                    return str(error)
                raise AssertionError("nothing was raised")
            assert message(lambda: symbolic_trace(f)) == "mindtorch_v2 has no torch.fx.symbolic_trace"
            assert message(Tracer) == "mindtorch_v2 has no torch.fx.Tracer"
            assert message(lambda: torch.onnx.export(f)) == "mindtorch_v2 has no torch.onnx.export"
            assert message(lambda: GraphModule.recompile) == "mindtorch_v2 has no torch.fx.GraphModule.recompile"
            assert message(lambda: bool(GraphModule)) == "mindtorch_v2 has no torch.fx.GraphModule"
            for name in ("torch", "torch.nn", "torch.fx", "torch.distributed.fsdp"):
                try:
                    getattr(__import__(name, fromlist=["x"]), "no_such_name")
                except AttributeError:
                    continue
                raise AssertionError(name)
            try:
                import torch.no_such_module
            except ModuleNotFoundError as error:
                assert "torch.no_such_module" in str(error), error
            else:
                raise AssertionError("found")
            """)

    def test_the_harmless_answers(self):
        self.check("""
            import torch, torch.backends.cudnn as cudnn, torch._dynamo
            f = lambda x: x
            assert torch.compile(f) is f and torch.compile(mode="max-autotune")(f) is f and torch.jit.script(f) is f
            assert torch.compiler.disable()(f) is f and torch.jit.ignore(f) is f and torch.fx.wrap("len") == "len"
            assert not (torch.jit.is_scripting() or torch.jit.is_tracing() or torch.compiler.is_compiling())
            assert not (torch.cuda.is_available() or torch.xpu.is_available() or torch.backends.mps.is_available())
            assert torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved() == 0
            torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
            torch.manual_seed(5); torch.cuda.manual_seed_all(6); a = torch.rand(3)
            torch.manual_seed(5); assert torch.equal(a, torch.rand(3))
            cudnn.benchmark = True
            with cudnn.flags(enabled=False, deterministic=True):
                assert cudnn.deterministic and not cudnn.benchmark
            assert cudnn.benchmark and cudnn.enabled and not cudnn.deterministic
            torch.backends.cuda.matmul.allow_tf32 = True
            torch._dynamo.config.suppress_errors = True
            """)

    def test_pickles_keep_their_classes(self):
        self.check("""
            import io, pickle, torch
            model = torch.nn.Linear(2, 3)
            assert type(pickle.loads(pickle.dumps(model))) is torch.nn.Linear
            assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is torch.nn.Linear
            file = io.BytesIO()
            torch.save(model.state_dict(), file); file.seek(0)
            assert torch.equal(torch.load(file)["weight"], model.weight)
            """)

    def test_install_and_uninstall_in_a_process(self):
        self.check("""
            import sys
            import mindtorch_v2
            own = mindtorch_v2.__version__
            mindtorch_v2.install_as_torch(); mindtorch_v2.install_as_torch()
            import torch.nn, torch.fx.experimental
            assert torch is mindtorch_v2 and torch.vmap is not None
            mindtorch_v2.uninstall_as_torch(); mindtorch_v2.uninstall_as_torch()
            assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
            assert mindtorch_v2.__version__ == mindtorch_v2.version.__version__ == own
            assert not hasattr(mindtorch_v2, "quantize_per_tensor")
            mindtorch_v2.install_as_torch()
            import torch.nn as again
            assert again is mindtorch_v2.nn and hasattr(torch, "quantize_per_tensor")
            mindtorch_v2.uninstall_as_torch()
            """, *PYTHON)

    def test_another_torch_is_refused(self):
        self.write("torch.py", "__version__ = '9.9'")
        self.check("""
            import torch, mindtorch_v2
            try:
                mindtorch_v2.install_as_torch()
            except RuntimeError as error:
                assert "torch 9.9 is imported already" in str(error) and "torch.py" in str(error), error
            else:
                raise AssertionError("installed")
            """, *PYTHON)
        self.check("import torch; assert torch.nn")  # in its place, the file is not found


class Command(RunTest):
    def test_the_program_is_run_as_python_does(self):
        self.write("script.py", """\
            import os, sys
            if __name__ == "__main__":
                print(sys.argv, __file__, sys.path[0] == os.getcwd(), __spec__, sys.orig_argv[1:])
                sys.exit(int(sys.argv[1]))
            """)
        self.write("package/__init__.py", "")
        self.write("package/__main__.py", "import sys; print(sys.argv[1:], __name__, __package__)\n")
        for program in (("script.py", "3"), ("-m", "package", "a b", ""), ("-c", "import sys; print(sys.argv)", "x"),
                        ("missing.py",), ("-c", "1 / 0")):
            with self.subTest(program=program):
                self.assertEqual(self.execute(*IN_PLACE, *program), self.execute(*PYTHON, *program))

    def test_processes_that_it_starts_are_in_its_place_too(self):
        self.write("script.py", """\
            import multiprocessing, subprocess, sys
            import torch
            def child():
                import torch
                print(torch._C.__name__, flush=True)
            if __name__ == "__main__":
                process = multiprocessing.get_context("spawn").Process(target=child)
                process.start(); process.join()
                subprocess.run([sys.executable, "-c", "import torch; print(torch._C.__name__)"])
            """)
        self.assertEqual(self.execute(*IN_PLACE, "script.py"), (0, "mindtorch_v2._C\n" * 2, ""))

    def test_a_wrong_command_line(self):
        for words in ((), ("--unknown", "x")):
            status, output, errors = self.execute(*IN_PLACE, *words)
            self.assertEqual((status, output), (2, ""))
            self.assertIn("a script, -m MODULE or -c CODE is needed", errors)
        self.assertIn("usage: python -m mindtorch_v2", self.execute(*IN_PLACE, "--help")[1])

    def test_under_mtprof_run(self):
        self.write("script.py", """\
            import sys
            import torch
            layer = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(layer.parameters(), 0.1)
            from torch.optim.optimizer import Optimizer
            for _ in range(4):
                layer(torch.ones(1, 2)).sum().backward()
                optimizer.step()
            sys.exit(5)
            """)
        run = [*PYTHON, "-m", "mtprof", "run", "-q", "-o", "trace.json"]
        for options in ((), ("--wait", "1", "--active", "1", "--repeat", "1")):
            with self.subTest(options=options):
                status, _, errors = self.execute(*run, *options, "-m", "mindtorch_v2", "script.py")
                self.assertEqual((status, errors), (5, ""))
                with open(self.path("trace.json"), encoding="utf-8") as file:
                    self.assertEqual(file.read().count('"aten::addmm"'), 1 if options else 4)

    def test_the_host_of_stock_torch_says_where_the_profiler_is(self):
        status, _, errors = self.execute(*IN_PLACE, "-c", "import mtprof.torch")
        self.assertEqual(status, 1)
        self.assertIn("torch.profiler", errors.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
