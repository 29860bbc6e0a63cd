# SPDX-License-Identifier: Apache-2.0
"""The accelerator as somebody who knows torch.cuda uses it: sentences of the contract that other tests leave out.

Written from the contract and from what torch answers on a GPU, not from the code.
"""
import copy
import gc
import io
import os
import pickle
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support_npu import in_thread, run_python, same, sim  # noqa: E402
import mindtorch_v2 as torch  # noqa: E402
from mindtorch_v2.utils.data import DataLoader, TensorDataset  # noqa: E402

npu, nn, F = torch.npu, torch.nn, torch.nn.functional


class Case(unittest.TestCase):
    """Whatever a test does to the thread is undone."""

    def tearDown(self):
        torch.set_default_device(None)
        for index in (1, 0):
            npu.set_stream(npu.default_stream(index))
        sim.lose(0, False)
        sim.lose(1, False)

    def assertWhere(self, tensor, device):
        self.assertEqual(tensor.device, torch.device(device))


class Names(Case):
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


class Contexts(Case):
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


class Streams(Case):
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


class Values(Case):
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
            with self.assertRaisesRegex(IndexError, "out of (bounds|range)"):
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


class Autograd(Case):
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


class Models(Case):
    """Modules, optimizers and their states on the move."""

    def train(self, model, optimizer, device, steps=3):
        torch.manual_seed(5)
        losses = []
        for _ in range(steps):
            x = torch.randn(8, 4).to(device)
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def make(self):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def test_moved_before_or_after_the_optimizer(self):
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            host = self.make()
            expected = self.train(host, kind(host.parameters(), lr=0.05), "cpu")
            before = self.make().npu()
            self.assertEqual(self.train(before, kind(before.parameters(), lr=0.05), "npu"), expected)
            if kind is torch.optim.Adagrad:  # its state is made with it, where the parameters were
                continue
            after = self.make()
            parameters = list(after.parameters())
            optimizer = kind(parameters, lr=0.05)
            self.assertIs(after.to("npu:1"), after)
            self.assertTrue(all(a is b and a.is_leaf for a, b in zip(parameters, after.parameters())))
            self.assertEqual(self.train(after, optimizer, "npu:1"), expected)
            for tensor in (*after.parameters(), *after.buffers()):
                self.assertWhere(tensor, "npu:1")

    def test_training_goes_on_elsewhere(self):
        """Half on the host, half on a device, from saved states: as if it had never moved."""
        whole = self.make()
        expected = self.train(whole, torch.optim.Adam(whole.parameters()), "cpu", 6)
        model = self.make()
        optimizer = torch.optim.Adam(model.parameters())
        torch.manual_seed(5)
        batches = [torch.randn(8, 4) for _ in range(6)]
        losses = []

        def steps(some, device):
            for x in some:
                optimizer.zero_grad()
                loss = model(x.to(device)).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())

        steps(batches[:3], "cpu")
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        state = torch.load(file, map_location="cuda:1")
        self.assertWhere(state["model"]["0.weight"], "npu:1")
        model = self.make().to("npu:1")
        optimizer = torch.optim.Adam(model.parameters())
        self.assertEqual(str(model.load_state_dict(state["model"])), "<All keys matched successfully>")
        optimizer.load_state_dict(state["optimizer"])
        steps(batches[3:], "npu:1")
        self.assertEqual(losses, expected)
        host = self.make()
        host.load_state_dict(model.state_dict())  # across devices
        self.assertTrue(all(same(a, b) for a, b in zip(host.state_dict().values(), model.state_dict().values())))
        self.assertWhere(host[0].weight, "cpu")

    def test_copies_keep_the_device(self):
        model = self.make().to("npu:1")
        model(torch.ones(4, 4, device="npu:1")).sum().backward()
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            for ours, theirs in zip(model.state_dict().values(), other.state_dict().values()):
                self.assertWhere(theirs, "npu:1")
                self.assertTrue(same(ours, theirs))
                self.assertNotEqual(ours.data_ptr(), theirs.data_ptr())
        self.assertWhere(model[0].weight.grad, "npu:1")
        self.assertWhere(model.cpu()[0].weight.grad, "cpu")

    def test_mistakes(self):
        model = nn.Linear(2, 2).npu()
        with self.assertRaisesRegex(RuntimeError, "npu:0"):
            model(torch.ones(1, 2))
        with self.assertRaisesRegex(RuntimeError, "npu:7"):
            model.to("npu:7")
        self.assertWhere(model.weight, "npu:0")
        with self.assertRaises(TypeError):
            model.npu(1, 2, 3)


class Memory(Case):
    """Counters, limits, and what the host cannot do."""

    def test_everything_comes_back(self):
        gc.collect()
        before = [npu.memory_allocated(i) for i in range(2)]
        model = nn.Linear(64, 64).npu()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            model(torch.ones(8, 64, device="npu")).sum().backward()
            optimizer.step()
        kept = model.weight.detach().to("npu:1")
        self.assertGreater(npu.memory_allocated(), before[0])
        self.assertEqual(npu.memory_allocated(1) - before[1], 64 * 64 * 4)
        del model, optimizer, kept
        gc.collect()
        self.assertEqual([npu.memory_allocated(i) for i in range(2)], before)

    def test_the_limit(self):
        gc.collect()
        npu.empty_cache()
        before = npu.memory_allocated()
        blocks = []
        with self.assertRaises(torch.OutOfMemoryError) as caught:
            for _ in range(300):
                blocks.append(torch.empty(8 << 20, dtype=torch.uint8, device="npu"))
        text = str(caught.exception)
        self.assertRegex(text, r"NPU out of memory\. Tried to allocate 8\.00 MiB\. NPU 0 has a total capacity of "
                               r"256\.00 MiB of which .* is free")
        self.assertEqual(npu.memory_allocated() - before, len(blocks) * (8 << 20))
        self.assertWhere(torch.empty(8 << 20, dtype=torch.uint8, device="npu:1"), "npu:1")  # the other has its own
        blocks.pop()
        blocks.append(torch.empty(8 << 20, dtype=torch.uint8, device="npu"))  # what was freed is used again
        blocks.clear()
        # Other sizes need what the cache holds: it gives that back by itself.
        self.assertEqual(torch.empty(200 << 20, dtype=torch.uint8, device="npu").numel(), 200 << 20)
        self.assertEqual(npu.memory_allocated(), before)
        self.assertGreaterEqual(npu.memory_reserved(), 200 << 20)
        npu.empty_cache()
        self.assertLess(npu.memory_reserved(), 8 << 20)
        for wrong in (-1, 1 << 62):
            with self.assertRaises(RuntimeError):
                torch.empty(wrong, device="npu")

    def test_the_host_cannot_look_inside(self):
        x = torch.ones(3, device="npu")
        for look in (memoryview, bytes, lambda t: t.numpy(), lambda t: t.__array__()):
            with self.assertRaises((TypeError, BufferError)):
                look(x)
        self.assertEqual(x.numpy(force=True).tolist(), [1.0] * 3)
        out = run_python("""
import ctypes, signal, mindtorch_v2 as torch
x = torch.ones(3, device='npu')
torch.npu.synchronize()
import os
child = os.fork()
if child == 0:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    ctypes.string_at(x.data_ptr(), 4)
    os._exit(0)
print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV)
""")
        self.assertEqual(out, "True\n")


class FirstHour(Case):
    """What a new user tries, and what the answers say."""

    TRY = ("import mindtorch_v2 as torch\n"
           "print(torch.npu.is_available(), torch.npu.device_count())\n"
           "try:\n    print(torch.ones(2, device='npu').sum().item())\n"
           "except RuntimeError as error: print(error)\n")

    def test_the_readme(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "..", "README.md"), encoding="utf-8") as file:
            section = file.read().split("## The accelerator")[1]
        example = section.split("```python\n")[1].split("```")[0]
        out = run_python("import mindtorch_v2 as torch\n" + example)
        for name in ("aten::mm", "aten::relu", "NPU total", "NPU Mem", "Self NPU time total"):
            self.assertIn(name, out)

    def test_without_the_variable(self):
        for value in (None, ""):
            out = run_python(self.TRY, MINDTORCH_NPU=value).splitlines()
            self.assertEqual(out[0], "False 0")
            self.assertIn("npu:0 is not available", out[1])
            self.assertIn("MINDTORCH_NPU=sim", out[1])  # what to do about it

    def test_a_misspelt_one(self):
        for value in ("smi", "SIM", "/nowhere/lib.so"):
            out = run_python(self.TRY, MINDTORCH_NPU=value).splitlines()
            self.assertEqual(out[0], "False 0")
            self.assertIn(f"MINDTORCH_NPU={value}", out[1])
            self.assertIn("cannot be opened", out[1])

    def test_bad_settings_are_named(self):
        for name, value, says in (("SIM_DEVICES", "0", "1 to 16"), ("SIM_DEVICES", "two", "1 to 16"),
                                  ("SIM_DEVICES", "17", "1 to 16"), ("SIM_MEMORY", "64MB", "K, M or G"),
                                  ("SIM_MEMORY", "1K", "4K at least"), ("SIM_LATENCY_NS", "-3", "nanoseconds"),
                                  ("LAUNCH_BLOCKING", "yes", "0 or 1")):
            with self.subTest(name=name, value=value):
                out = run_python(self.TRY, **{"MINDTORCH_NPU_" + name: value}).splitlines()
                self.assertEqual(out[0], "False 0")
                self.assertIn(f"MINDTORCH_NPU_{name}={value}", out[1])
                self.assertIn(says, out[1])

    def test_one_small_device(self):
        out = run_python(self.TRY + "try: torch.empty(1 << 22, device='npu')\n"
                         "except torch.OutOfMemoryError as error: print(error)\n"
                         "try: torch.ones(1, device='npu:1')\n"
                         "except RuntimeError as error: print(error)\n",
                         MINDTORCH_NPU_SIM_DEVICES="1", MINDTORCH_NPU_SIM_MEMORY="8M").splitlines()
        self.assertEqual(out[:2], ["True 1", "2.0"])
        self.assertIn("total capacity of 8.00 MiB", out[2])
        self.assertIn("npu:1 is not available: there is 1", out[3])


class Threads(Case):
    """Several threads with devices of their own."""

    def test_a_device_and_a_stream_each(self):
        failures, results = [], {}

        def work(number):
            try:
                device = number % 2
                npu.set_device(device)
                with npu.stream(npu.Stream()):
                    x = torch.zeros(16, device="npu")
                    for _ in range(100):
                        x = x + number
                    w = torch.ones(16, device="npu", requires_grad=True)
                    (w * x).sum().backward()
                    results[number] = (x.tolist(), w.grad.tolist(), x.device.index, w.grad.device.index)
                if npu.current_device() != device:
                    raise AssertionError("the thread's device has changed")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        for number, result in results.items():
            values = [100.0 * number] * 16
            self.assertEqual(result, (values, values, number % 2, number % 2))
        self.assertEqual(len(results), 6)


if __name__ == "__main__":
    unittest.main()
