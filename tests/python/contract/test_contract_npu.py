# SPDX-License-Identifier: Apache-2.0
"""The accelerator as a user of torch.cuda uses it: items of the contract that other tests leave out.

Written from the contract and from what torch answers on a GPU, not from the code.
"""
import copy
import os
import pickle
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support_npu import NpuCase, in_thread, run_python, same, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils.data import DataLoader, TensorDataset  # noqa: E402

npu, nn, F = torch.npu, torch.nn, torch.nn.functional


class Names(NpuCase):
    """Every name of the contract, by position and by keyword, in both spellings of the device."""

    def test_a_device_can_be_named_in_every_way(self):
        for function in (npu.synchronize, npu.memory_allocated, npu.max_memory_allocated, npu.memory_reserved,
                         npu.reset_peak_memory_stats, npu.mem_get_info, npu.get_device_name, npu.set_device,
                         npu.Stream, npu.current_stream, npu.default_stream, npu.device, npu.memory_stats,
                         npu.memory_summary, npu.get_device_properties, npu.max_memory_reserved):
            for name in (1, "npu:1", "cuda:1", torch.device("npu:1"), torch.device("cuda", 1), torch.device(1)):
                with self.subTest(function=function.__name__, name=name):
                    function(name)
                    function(device=name)
                    npu.set_device(0)

    def test_what_names_no_device_is_refused_by_name(self):
        wrong = {True: TypeError, 1.5: TypeError, b"npu": TypeError, (): TypeError, "": RuntimeError,
                 "gpu": RuntimeError, "npu:": RuntimeError, "npu:-1": RuntimeError, "npu:x": RuntimeError,
                 "npu:1:1": RuntimeError, "npu 1": RuntimeError, 2: RuntimeError, 2**40: RuntimeError,
                 "cpu": ValueError, torch.device("cpu"): ValueError, torch.ones(1): TypeError}
        for function in (npu.synchronize, npu.memory_allocated, npu.mem_get_info, npu.get_device_name, npu.set_device,
                         npu.Stream, npu.current_stream):
            for name, error in wrong.items():
                with self.subTest(function=function.__name__, name=name):
                    with self.assertRaises(error):
                        function(name)
        with self.assertRaisesRegex(RuntimeError, str(2**40)):
            npu.set_device(2**40)
        with self.assertRaisesRegex(TypeError, "True"):
            npu.set_device(True)
        self.assertEqual(npu.current_device(), 0)

    def test_cuda_is_the_same_device(self):
        self.assertEqual(torch.device("cuda:1"), torch.device("npu:1"))
        self.assertEqual(len({torch.device("cuda:1"), torch.device("npu", 1), torch.device("cuda", 1)}), 1)
        x = torch.ones(2, device="cuda:1")
        self.assertTrue(x.is_cuda and x.is_npu and not x.is_cpu)
        self.assertEqual((x.device.type, x.device.index, x.get_device()), ("npu", 1, 1))
        for made in (torch.zeros(2).to("cuda:1"), torch.zeros(2).cuda(1), torch.zeros(2).npu("cuda:1"),
                     torch.zeros_like(x), x.new_zeros(2), torch.full((2,), 1.0, device="cuda:1"),
                     torch.arange(2, device=torch.device("cuda:1")), torch.as_tensor([1.0], device="cuda:1"),
                     torch.empty_like(torch.ones(2), device="cuda:1"), nn.Linear(2, 2, device="cuda:1").weight,
                     nn.Linear(2, 2).to(device="cuda:1").weight, torch.zeros(2).to(1), torch.zeros(2, device=1)):
            self.assertWhere(made, "npu:1")
        self.assertEqual(torch.cuda.memory_allocated("cuda:1"), npu.memory_allocated(1))

    def test_type_names_name_the_device_too(self):
        x = torch.ones(2, device="npu:1")
        self.assertEqual(x.type(), "torch.npu.FloatTensor")
        self.assertWhere(x.type("torch.DoubleTensor"), "cpu")
        self.assertWhere(x.type("torch.cuda.DoubleTensor"), "npu:1")
        self.assertWhere(x.type(torch.int64), "npu:1")
        self.assertWhere(x.cpu().type("torch.npu.IntTensor"), "npu:0")
        with self.assertRaisesRegex(ValueError, "torch.xpu.FloatTensor"):
            x.type("torch.xpu.FloatTensor")

    def test_unfinished_names_are_attribute_errors(self):
        for module in (npu, torch.cuda):
            with self.assertRaisesRegex(AttributeError, "no_such_thing"):
                module.no_such_thing


class Contexts(NpuCase):
    """Current devices and streams: nested, left by exceptions, of threads."""

    def where(self):
        return (npu.current_device(), npu.current_stream(0).stream_id, npu.current_stream(1).stream_id,
                str(torch.get_default_device()), torch.is_grad_enabled())

    def test_an_exception_leaves_nothing_behind(self):
        before = self.where()
        with self.assertRaises(KeyError):
            with npu.device(1), npu.stream(npu.Stream(1)), torch.device("npu:0"), torch.no_grad():
                with npu.stream(npu.Stream(0)), npu.Stream(1), npu.device("cuda:0"):
                    self.assertNotEqual(self.where(), before)
                    raise KeyError
        self.assertEqual(self.where(), before)

    def test_one_object_entered_twice(self):
        stream, other, device = npu.Stream(), npu.Stream(), npu.device(1)
        block = npu.stream(stream)
        with npu.stream(other):
            with block:
                with block:
                    self.assertEqual(npu.current_stream(), stream)
                self.assertEqual(npu.current_stream(), stream)
            self.assertEqual(npu.current_stream(), other)
        with device:
            with npu.device(0), device:
                self.assertEqual(npu.current_device(), 1)
            self.assertEqual(npu.current_device(), 1)
        self.assertEqual(npu.current_device(), 0)

    def test_a_block_that_cannot_be_entered_changes_nothing(self):
        before = self.where()
        for block in (npu.device(9), npu.stream(5), npu.stream("npu")):
            with self.assertRaises((RuntimeError, AttributeError)):
                with block:
                    self.fail()
            self.assertEqual(self.where(), before)

    def test_a_stream_of_another_device_takes_the_device_along(self):
        s = npu.Stream(1)
        with npu.stream(s):
            made = torch.ones(2, device="npu") + 1
            with npu.device(0):
                self.assertEqual(npu.current_stream(), npu.default_stream(0))
                self.assertEqual(npu.current_stream(1), s)
        self.assertWhere(made, "npu:1")
        self.assertEqual(self.where()[:3], (0, 0, 0))

    def test_threads_begin_at_the_beginning(self):
        with npu.device(1), npu.stream(npu.Stream(1)), torch.device("npu:1"):
            self.assertEqual(in_thread(self.where), (0, 0, 0, "cpu", True))
            mine = self.where()
            in_thread(lambda: (npu.set_device(0), npu.set_stream(npu.Stream(0)), torch.set_default_device("npu:0")))
            self.assertEqual(self.where(), mine)

    def test_tensors_of_the_other_device(self):
        """Everything about a tensor happens on its own device, whichever is current."""
        x = torch.arange(6.0, device="npu:1").reshape(2, 3).requires_grad_()
        results = [x + 1, x @ x.t(), x[0], x[x > 2], x.sum(), torch.cat([x, x]), x.nonzero(), x.sort().values,
                   torch.zeros_like(x), x.clone(), x.to(torch.float64), x.argmax(), F.dropout(x, 0.5),
                   copy.deepcopy(x.detach())]
        x.pow(2).sum().backward()
        for result in (*results, x.grad):
            self.assertWhere(result, "npu:1")
        self.assertEqual(npu.current_device(), 0)
        with self.assertRaisesRegex(RuntimeError, "npu:0 and npu:1|npu:1 and npu:0"):
            x + torch.ones(2, 3, device="npu:0")


class Streams(NpuCase):
    """Order across streams, devices and the host."""

    def test_events_order_devices(self):
        a, b = npu.Stream(0), npu.Stream(1)
        x = torch.zeros(64, device="npu:0")
        npu.synchronize()
        with sim.held(a):
            with npu.stream(a):
                x.add_(5)
                done = a.record_event()
            b.wait_event(done)
            with npu.stream(b):
                y = x.to("npu:1", non_blocking=True)
                y.mul_(2)
            self.assertFalse(b.query())
            self.assertFalse(done.query())
        b.synchronize()
        self.assertEqual(y.tolist(), [10.0] * 64)

    def test_an_event_again_and_again(self):
        event, s = npu.Event(enable_timing=True), npu.Stream()
        for _ in range(3):
            with sim.held(s):
                event.record(s)
                self.assertFalse(event.query())
            event.synchronize()
            self.assertTrue(event.query())
        with self.assertRaisesRegex(ValueError, "npu:0 and npu:1"):
            other = npu.Event(enable_timing=True)
            other.record(npu.Stream(1))
            other.synchronize()
            event.elapsed_time(other)

    def test_wrong_arguments(self):
        s, event = npu.Stream(), npu.Event()
        for call in (lambda: npu.Stream(no=1), lambda: npu.Event(no=1), lambda: npu.Stream(priority="high"),
                     lambda: s.wait_event(s), lambda: event.elapsed_time(5), lambda: event.elapsed_time(),
                     lambda: pickle.dumps(s), lambda: pickle.dumps(event), lambda: copy.deepcopy(event)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(AttributeError):
            s.device = torch.device("npu:1")
        with self.assertRaises(ValueError):
            torch.Stream("cpu")

    def test_printing_waits_for_what_is_queued(self):
        x = torch.zeros(3, device="npu")
        npu.synchronize()
        for show in (repr, str, "{}".format, torch.Tensor.tolist, lambda t: t.cpu(), list, pickle.dumps):
            sim.hold(20)
            y = x
            for _ in range(20):
                y = y + 1
            show(y)
            self.assertEqual(y.sum().item(), 60)
        self.assertEqual(repr(y), "tensor([20., 20., 20.], device='npu:0')")

    def test_a_side_stream_prefetches_batches(self):
        """Pinned batches are copied on a stream of their own while the batch before is used; nothing waits, and no
        memory, of the host or of the device, is used again too early."""
        data = torch.arange(256.0).reshape(64, 4)
        for workers in (0, 2):
            s, sums = npu.Stream(), []
            npu.synchronize()
            for batch, in DataLoader(TensorDataset(data), batch_size=4, pin_memory=True, num_workers=workers):
                self.assertTrue(batch.is_pinned())
                sim.hold(3, s)  # the copies begin when all three are queued
                with npu.stream(s):
                    there = batch.to("npu", non_blocking=True)
                    twice = there * 2
                    extra = batch.npu(non_blocking=True)
                del batch  # its memory goes to the next batch, but not before the copies are done
                npu.current_stream().wait_stream(s)
                for tensor in (there, twice, extra):
                    tensor.record_stream(npu.current_stream())
                sums.append((there + twice - extra).sum())
                del there, twice, extra
            self.assertEqual(sum(x.item() for x in sums), 2 * data.sum().item())
            self.assertEqual(sim.counts(s)["gave_up"], 0)

    def test_pinned_memory_is_not_used_again_early(self):
        s = npu.Stream()
        source = torch.full((4096,), 7.0).pin_memory()
        npu.synchronize()
        with sim.held(s):
            with npu.stream(s):
                there = source.to("npu", non_blocking=True)
            del source
            others = [torch.zeros(4096).pin_memory() for _ in range(8)]
            s_done = s.query()
        s.synchronize()
        self.assertFalse(s_done)
        self.assertEqual(there.sum().item(), 7.0 * 4096)
        del others


class Copies(NpuCase):
    """Between the host and the device, in time."""

    def test_pageable_memory_may_change_at_once(self):
        """Only pinned memory must be left alone until the copy is done."""
        s, source = npu.Stream(), torch.ones(100000)
        npu.synchronize()
        with sim.held(s):
            with npu.stream(s):
                there = [source.to("npu", non_blocking=True), source.npu(),
                         torch.empty(100000, device="npu").copy_(source, non_blocking=True),
                         torch.empty(100000, device="npu", dtype=torch.float64).copy_(source, non_blocking=True),
                         source.view(1000, 100).t().to("npu", non_blocking=True)]
            source.zero_()
            del source
            self.assertEqual(sim.counts(s)["done"], 0)
        s.synchronize()
        self.assertEqual([x.sum().item() for x in there], [100000.0] * 5)

    def test_to_pageable_memory_waits(self):
        x = torch.zeros(1000, device="npu")
        npu.synchronize()
        sim.hold(50)
        for _ in range(50):
            x = x + 1
        self.assertEqual(x.to("cpu", non_blocking=True).sum().item(), 50000.0)

    def test_shapes_and_types(self):
        host = torch.arange(24.0).reshape(2, 3, 4)
        for view in (host, host.transpose(0, 2), host[:, 1:, ::2], host[1].t(), host.expand(2, 2, 3, 4), host[:0],
                     host[1, 2, 3], host.flip(0)):
            for device in ("npu:0", "npu:1"):
                there = view.to(device)
                self.assertTrue(same(there, view))
                back = there.transpose(0, -1).cpu() if view.dim() else there.cpu()
                self.assertTrue(same(back, view.transpose(0, -1) if view.dim() else view))
                self.assertTrue(same(there.to("npu:0", torch.int64), view.long()))
                out = torch.zeros(view.shape).copy_(there)
                self.assertTrue(same(out, view))
        x = torch.arange(10.0, device="npu")
        x[1:].copy_(x[:-1])  # the memory overlaps
        self.assertEqual(x.tolist(), [0.0] + list(range(9)))
        self.assertEqual(torch.zeros(2, 3, device="npu").copy_(torch.arange(3)).tolist(), [[0.0, 1.0, 2.0]] * 2)

    def test_streams_and_memory_under_load(self):
        """Blocks pass between streams and threads; every value arrives."""
        streams = [npu.Stream() for _ in range(4)]
        failures = []

        def work(seed):
            import random
            draw = random.Random(seed)
            host = [torch.full((draw.choice((16, 300, 5000, 70000)),), float(seed * 10 + i)) for i in range(6)]
            try:
                for _ in range(60):
                    here, other, source = draw.choice(streams), draw.choice(streams), draw.choice(host)
                    with npu.stream(here):
                        x = source.to("npu", non_blocking=draw.random() < 0.5)
                        for _ in range(draw.randint(1, 5)):
                            x = x * 1.0
                    other.wait_stream(here)
                    with npu.stream(other):
                        y = x + 1
                        x.record_stream(other)
                    del x
                    junk = [torch.full((source.numel(),), -1.0, device="npu") for _ in range(2)]
                    with npu.stream(other):
                        if not torch.equal(y.cpu(), source + 1):
                            raise AssertionError("wrong values")
                    del junk, y
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual(failures, [])


class Values(NpuCase):
    """What Python asks of tensors."""

    def test_numbers_and_containers(self):
        x = torch.tensor([3.0, 1.0, 2.0], device="npu")
        self.assertEqual((int(x[0]), float(x[1]), bool(x[2]), complex(x[1]), len(x)), (3, 1.0, True, 1 + 0j, 3))
        self.assertEqual(["a", "b", "c", "d"][x[0].long()], "d")
        self.assertEqual(list(range(x[2].long())), [0, 1])
        self.assertEqual(f"{x[0]:.2f} {'%d' % x[1]}", "3.00 1")
        self.assertEqual([float(v) for v in x], [3.0, 1.0, 2.0])
        self.assertEqual([v.item() for v in reversed(x)], [2.0, 1.0, 3.0])
        first, *rest = x
        self.assertWhere(first, "npu:0")
        self.assertTrue(2.0 in x and 9.0 not in x)
        self.assertTrue(bool((x >= 1).all()) and bool((x > 2).any()) and not (x > 5).any())
        self.assertEqual((max(x).item(), min(x).item(), sorted(x.tolist())), (3.0, 1.0, [1.0, 2.0, 3.0]))
        self.assertEqual(((x == x).tolist(), (x != 2).tolist()), ([True] * 3, [True, True, False]))
        with self.assertRaisesRegex(RuntimeError, "ambiguous"):
            bool(x)
        with self.assertRaises(IndexError):
            x[3]
        self.assertEqual(torch.empty(0, 3, device="npu").tolist(), [])

    def test_in_place_and_versions(self):
        x = torch.zeros(4, device="npu")
        view, before = x[1:3], x._version
        view.add_(1)
        x[0] = 5
        x[x > 4] = -1.0
        self.assertEqual(x._version, before + 3)
        self.assertEqual(x.tolist(), [-1.0, 1.0, 1.0, 0.0])
        w = torch.ones(4, device="npu", requires_grad=True)
        y = w * 2
        z = y * y
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, r"inplace operation: \[torch.npu.FloatTensor \[4\]\]"):
            z.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "leaf Variable"):
            w.add_(1)

    def test_out_must_be_where_the_result_is(self):
        x = torch.ones(3, device="npu")
        out = torch.empty(3, device="npu")
        self.assertIs(torch.add(x, 1, out=out), out)
        self.assertEqual(torch.zeros(3, out=out).tolist(), [0.0] * 3)
        for call in (lambda: torch.add(x, 1, out=torch.empty(3)), lambda: torch.mul(x.cpu(), 2, out=out),
                     lambda: torch.add(x, 1, out=torch.empty(3, device="npu:1")),
                     lambda: torch.cat([x, x], out=torch.empty(0))):
            with self.assertRaisesRegex(RuntimeError, "Expected out tensor to have device"):
                call()

    def test_seeds_do_not_know_devices(self):
        def drawn(device):
            torch.manual_seed(11)
            one = torch.ones(40, device=device)
            return [torch.randn(7, device=device), torch.rand(7, device=device), torch.randperm(20, device=device),
                    torch.randint(9, (5,), device=device), torch.bernoulli(one * 0.5), F.dropout(one, 0.3),
                    torch.multinomial(one, 5), torch.empty(6, device=device).normal_(),
                    torch.empty(6, device=device).uniform_(2, 3), torch.randn_like(one)]

        host = drawn("cpu")
        for device in ("npu:0", "npu:1"):
            for ours, theirs in zip(drawn(device), host):
                self.assertWhere(ours, device)
                self.assertTrue(same(ours, theirs))

    def test_failures_are_told_once_and_leave_the_device_usable(self):
        x = torch.arange(4.0, device="npu")
        far = torch.tensor([9], device="npu")
        for bad in (lambda: x[far], lambda: F.embedding(far, torch.ones(3, 2, device="npu")),
                    lambda: x.index_select(0, far), lambda: x.gather(0, far),
                    lambda: F.cross_entropy(torch.ones(1, 3, device="npu"), far)):
            kept = bad()  # nothing is said here
            with self.assertRaisesRegex((IndexError, RuntimeError), "out of (bounds|range)"):
                npu.synchronize()
            npu.synchronize()
            self.assertEqual((x + 1).tolist(), [1.0, 2.0, 3.0, 4.0])
            del kept

    def test_blocking_launches_tell_at_the_call(self):
        run_python("""
import mindtorch_v2 as torch
x = torch.arange(4.0, device='npu')
try:
    x[torch.tensor([9], device='npu')]
except IndexError as error:
    assert 'index 9' in str(error), error
else:
    raise AssertionError
torch.npu.synchronize()
""", MINDTORCH_NPU_LAUNCH_BLOCKING="1")


class Autograd(NpuCase):
    """Gradients where their tensors are."""

    def test_function_hooks_and_modes(self):
        seen = []

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a * a

            @staticmethod
            def backward(ctx, grad):
                a, = ctx.saved_tensors
                seen.extend((grad.device, a.device))
                return 2 * a * grad

        w = torch.tensor([1.0, 2.0], device="npu:1", requires_grad=True)
        y = Square.apply(w)
        y.register_hook(lambda grad: seen.append(grad.device))
        y.retain_grad()
        y.sum().backward()
        self.assertEqual(set(seen), {torch.device("npu:1")})
        self.assertEqual(len(seen), 3)
        self.assertEqual((w.grad.tolist(), y.grad.tolist()), ([2.0, 4.0], [1.0, 1.0]))
        with torch.no_grad():
            self.assertFalse(Square.apply(w).requires_grad)
            w.add_(1)
        self.assertEqual(w.detach().tolist(), [2.0, 3.0])
        with self.assertRaisesRegex(RuntimeError, "'cpu'"):
            w.grad = torch.ones(2)
        with self.assertRaisesRegex(RuntimeError, "device"):
            (w * 2).backward(torch.ones(2))
        self.assertWhere(torch.autograd.grad(w.sum(), w)[0], "npu:1")

    def test_a_graph_over_three_devices(self):
        a = torch.ones(3, requires_grad=True)
        b = torch.full((3,), 2.0, device="npu:1", requires_grad=True)
        c = (a.npu() * 3).to("npu:1") * b
        c.cpu().sum().backward()
        self.assertEqual((a.grad.tolist(), b.grad.tolist()), ([6.0] * 3, [3.0] * 3))
        self.assertWhere(a.grad, "cpu")
        self.assertWhere(b.grad, "npu:1")

    def test_backward_runs_on_the_forward_s_stream(self):
        s = npu.Stream()
        w = torch.ones(8, device="npu", requires_grad=True)
        npu.synchronize()
        with npu.stream(s):
            loss = (w * 3).sum()
        s.synchronize()
        sim.reset_counts(s)
        loss.backward()
        self.assertGreater(sim.counts(s)["launches"], 0)
        npu.synchronize()
        self.assertEqual(w.grad.tolist(), [3.0] * 8)


if __name__ == "__main__":
    unittest.main()
