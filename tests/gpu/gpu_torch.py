# SPDX-License-Identifier: Apache-2.0
"""Stock PyTorch on a GPU under mtprof.torch, compared with torch.profiler on the same programs.

torch.profiler keeps CUPTI once it has run, so every case that compares runs ours first, in a process of its own.
Durations are printed and judge nothing. Those that print them run alone, the others six at a time where there are
processors for it.
"""
import collections
import concurrent.futures
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

LONG = os.environ.get("MT_LONG") == "1"


def import_all():
    global torch, mt, tp
    import torch
    import torch.profiler as tp
    import mtprof.torch as mt


def ours(**arguments):
    return mt.profile(activities=[mt.ProfilerActivity.CPU, mt.ProfilerActivity.CUDA], **arguments)


def theirs(**arguments):
    return tp.profile(activities=[tp.ProfilerActivity.CPU, tp.ProfilerActivity.CUDA], **arguments)


def trace(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)


# ---- programs ----

def cnn():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 16 * 16, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def gpt():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
    model = torch.nn.ModuleDict({
        "embed": torch.nn.Embedding(100, 64), "head": torch.nn.Linear(64, 100),
        "blocks": torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)}).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 100, (4, 32), device="cuda")
    mask = torch.nn.Transformer.generate_square_subsequent_mask(32, device="cuda")

    def step():
        optimizer.zero_grad()
        out = model["head"](model["blocks"](model["embed"](tokens), mask=mask, is_causal=True))
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def work(document):
    """[(name, op, duration)] of what the GPU did, in the order of the launches."""
    events = document["traceEvents"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    ops = {e["args"]["External id"]: e["name"] for e in events
           if e.get("cat") in ("cpu_op", "user_annotation") and "External id" in e.get("args", {})}
    done = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    done.sort(key=lambda e: (calls[e["args"]["correlation"]]["ts"], e["ts"]))
    return [(e["name"], ops.get(e["args"].get("External id")), e["dur"], calls[e["args"]["correlation"]]["name"])
            for e in done]


def compare(make):
    step = make()
    for _ in range(3):
        step()
    both = []
    for profile in (ours, theirs):
        with profile() as prof:
            for _ in range(3):
                step()
        both.append(work(trace(prof)))
        if profile is ours:
            assert prof.health().ok, prof.health()
            assert mt.cuda_info().missing == "" and mt.cuda_info().unjoined == 0, mt.cuda_info()
    mine, reference = both
    assert collections.Counter(w[0] for w in mine) == collections.Counter(w[0] for w in reference), "other kernels"
    differ = [(a, b) for a, b in zip(mine, reference) if (a[:2], a[3]) != (b[:2], b[3])]
    assert not differ, f"{len(differ)} of {len(mine)} differ: {differ[:3]}"
    times = collections.defaultdict(lambda: ([], []))
    for side, items in enumerate(both):
        for name, _, duration, _ in items:
            times[name][side].append(duration)
    ratios = sorted(statistics.median(a) / statistics.median(b) for a, b in times.values() if min(*a, *b) > 0)
    print(f"{make.__name__}: {len(mine)} pieces of work equal; durations ours / theirs: least {ratios[0]:.3f}, "
          f"median {statistics.median(ratios):.3f}, most {ratios[-1]:.3f}")


# ---- cases: each in a process of its own ----

def case_cnn():
    compare(cnn)


def case_gpt():
    compare(gpt)


def case_tracks():
    """Work is on its stream's track in order, after its launch, with torch's arguments and arrows."""
    step = cnn()
    step()
    with ours() as prof:
        with mt.record_function("outer"):
            step()
    document = trace(prof)
    events = document["traceEvents"]
    assert document["deviceProperties"][0]["name"] == torch.cuda.get_device_name(0)
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert kernels
    ends = collections.defaultdict(float)
    for e in sorted(kernels, key=lambda e: e["ts"]):
        args = e["args"]
        assert "recorded_ts" not in args, "moved"
        assert e["ts"] >= calls[args["correlation"]]["ts"]
        assert e["ts"] >= ends[e["tid"]]
        ends[e["tid"]] = e["ts"] + e["dur"] - 0.001
        assert len(args["grid"]) == 3 and len(args["block"]) == 3 and 0 <= args["est. achieved occupancy %"] <= 100
    starts, finishes = ([e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == phase] for phase in "sf")
    assert sorted(starts) == sorted(finishes) and len(starts) >= len(kernels)
    assert [e["name"] for e in events if e.get("cat") == "gpu_user_annotation"].count("outer") == 1
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::cudnn_convolution"].self_device_time_total > 0


def case_threads():
    """Launches of 4 threads on 3 streams: every one has its work."""
    import threading
    count = 250_000 if LONG else 25_000
    x = torch.ones(2, 2, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()

    def run(number):
        for i in range(count // 1000):
            with torch.cuda.stream(streams[(number + i) % 3]):
                for _ in range(1000):
                    x + x
    with ours() as prof:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    health, info = prof.health(), mt.cuda_info()
    assert health.ok, health
    assert info.records >= 4 * count and info.unjoined == 0 and info.dropped == 0, info
    print(f"{4 * count} launches: {health}")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(turn):
    """KiB by which the process grows in a turn, after the first quarter of them."""
    sizes = []
    for number in range(1000 if LONG else 200):
        turn(number)
        sizes.append(resident() >> 10)
    quarter = len(sizes) // 4
    return (sizes[-1] - sizes[quarter]) / (len(sizes) - quarter)


def case_cycles():
    """Recordings leave no more behind than CUPTI does by itself when it is detached (docs/nvidia.md)."""
    x = torch.ones(2, 2, device="cuda")

    def turn(number):
        with ours() as prof:
            x + x
        assert prof.health().ok, prof.health()
        assert mt.cuda_info().records == number + 1, mt.cuda_info()
        assert not mt.cuda_info().running
    mine = growth(turn)
    done = subprocess.run([sys.executable, __file__, "--case", "bare_cycles", mt.cuda_info().library], check=True,
                          capture_output=True, text=True)
    bare = float(done.stdout)
    print(f"cycles: {mine:.1f} KiB each; CUPTI without us: {bare:.1f}")
    assert mine < 1.5 * bare + 20


def case_bare_cycles(library):
    """The same with CUPTI alone: taken, and detached from the exit of a call."""
    import ctypes
    cupti, cuda = ctypes.CDLL(library), ctypes.CDLL("libcuda.so.1")
    x = torch.ones(2, 2, device="cuda")
    detached = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))
    def callback(_, domain, number, data):
        if data[0] == 1 and not detached:  # the exit
            detached.append(cupti.cuptiFinalize())

    def turn(_):
        subscriber, version = ctypes.c_void_p(), ctypes.c_int()
        detached.clear()
        assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
        x + x
        assert cupti.cuptiEnableCallback(1, subscriber, 1, 2) == 0  # cuDriverGetVersion
        cuda.cuDriverGetVersion(ctypes.byref(version))
        assert detached == [0], detached
    print(growth(turn))


def case_busy():
    """Recordings begin and end while other threads launch: nothing crashes or hangs, and work is not lost."""
    import threading
    x = torch.ones(2, 2, device="cuda")
    stop = threading.Event()

    def run():
        with torch.cuda.stream(torch.cuda.Stream()):
            while not stop.is_set():
                for _ in range(100):
                    x + x
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    unmatched = 0
    try:
        for _ in range(100 if LONG else 30):
            with ours() as prof:
                for _ in range(200):
                    x + x
            health = prof.health()
            assert health.lost == 0 and not mt.cuda_info().running, (health, mt.cuda_info())
            unmatched += health.unmatched
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    info = mt.cuda_info()
    assert info.dropped == 0 and info.unreadable == 0 and info.waits_failed == 0, info
    print(f"busy: {info.records} records, {info.unjoined} without their call, {unmatched} launches unmatched")


def memory(document):
    """Bytes of the allocations and releases on the GPU, with what is allocated and reserved after each, sorted."""
    return sorted((e["args"]["Bytes"], e["args"]["Total Allocated"], e["args"]["Total Reserved"])
                  for e in document["traceEvents"] if e["name"] == "[memory]" and e["args"]["Device Type"] == 1)


def case_memory():
    """Allocations of torch's CUDA allocator, as torch.profiler reports them."""
    step = cnn()
    for _ in range(3):
        step()
    both = []
    for profile in (ours, theirs):
        with profile(profile_memory=True) as prof:
            step()
        both.append(memory(trace(prof)))
    assert both[0] and both[0] == both[1], [len(side) for side in both] + [side[:6] for side in both]
    print(f"memory: {len(both[0])} allocations and releases equal")


def case_in_flight():
    """A recording that ends with work in flight waits for it."""
    a = torch.randn(2048, 2048, device="cuda")
    with ours() as prof:
        for _ in range(2000):
            a @ a
    assert prof.health().ok, prof.health()
    kernels = [e for e in prof.events() if e.device_type == mt.DeviceType.CUDA]
    assert len(kernels) >= 2000, len(kernels)


def case_schedule():
    step = cnn()
    seen = []
    with ours(schedule=mt.schedule(wait=1, warmup=1, active=2, repeat=3),
              on_trace_ready=lambda p: seen.append(len(work(trace(p))))) as prof:
        for _ in range(12):
            step()
            prof.step()
    assert len(seen) == 3 and min(seen) > 20, seen


def case_waits():
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    for wanted in (False, True):
        with ours(experimental_config=mt._ExperimentalConfig(enable_cuda_sync_events=wanted)) as prof:
            with torch.cuda.stream(a):
                x + x
                event = a.record_event()
            with torch.cuda.stream(b):
                b.wait_event(event)
                x + x
        names = {e["name"] for e in trace(prof)["traceEvents"] if e.get("cat") == "cuda_sync"}
        assert ("Stream Wait Event" in names) == wanted, names


def case_graph():
    """Replays of a captured graph: every kernel is there, and captured launches are none."""
    y = torch.randn(64, 64, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            (y @ y).relu().sum()
    torch.cuda.synchronize()
    with ours() as prof:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            (y @ y).relu().sum()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    assert prof.health().ok, prof.health()
    events = trace(prof)["traceEvents"]
    launches = {e["args"]["correlation"] for e in events if e["name"] == "cudaGraphLaunch"}
    replayed = [e for e in events if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    assert len(launches) == 10 and len(replayed) >= 30 and len(replayed) % 10 == 0, (len(launches), len(replayed))
    assert {e["args"]["correlation"] for e in replayed} == launches
    print(f"graph: {len(replayed)} kernels of {len(launches)} replays")


def captured_model():
    """A model, its input and the graph of a forward pass that has not been captured yet."""
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()) for _ in range(50)))
    model, x = model.cuda(), torch.randn(64, 64, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    return model, x, torch.cuda.CUDAGraph()


def check_captured(prof, replays, what):
    """99 of 100 kernels of the replays tell the op and the module that captured them."""
    events = trace(prof)["traceEvents"]
    work = [e["args"] for e in events if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    ops = [args.get("captured op", "") for args in work]
    known = sum(op.startswith("aten::") for op in ops)
    placed = sum("captured module" in args for args in work)
    print(f"{what}: {len(work)} kernels of replays, {known} with their op, {placed} with their module")
    assert len(work) >= replays * 100, len(work)
    assert known >= 0.99 * len(work) and placed >= 0.99 * len(work), collections.Counter(ops)
    assert {"aten::addmm", "aten::clamp_min"} & set(ops), collections.Counter(ops)
    assert len({args["captured module"] for args in work if "captured module" in args}) >= 50


def case_graph_ops():
    """Kernels of a replay tell the op and the module that captured them, also in a later profile."""
    model, x, graph = captured_model()
    with ours(with_modules=True) as prof:
        with torch.cuda.graph(graph), torch.no_grad():
            model(x)
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    assert prof.health().ok, prof.health()
    check_captured(prof, 10, "captured in the profile")
    with ours() as prof:
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    check_captured(prof, 10, "captured in the profile before")
    info = mt.cuda_info()
    assert info.replayed >= 2000 and info.replayed_unknown <= info.replayed // 100 and info.nodes_lost == 0, info


def case_graph_destroyed():
    """Graphs come and go: what is known of them goes as well, and a graph of nobody is nobody's."""
    model, x, before = captured_model()
    with torch.cuda.graph(before), torch.no_grad():
        model(x)
    with ours(with_modules=True) as prof:
        before.replay()
        for _ in range(20):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph), torch.no_grad():
                model(x)
            graph.replay()
            torch.cuda.synchronize()
            del graph
    events = trace(prof)["traceEvents"]
    work = [e["args"] for e in events if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    unknown = sum("captured op" not in args for args in work)
    print(f"destroyed graphs: {len(work)} kernels, {unknown} without their op")
    assert 0 < unknown <= len(work) * 0.07, (len(work), unknown)  # those of the graph that nobody saw


def case_graph_edges():
    """Which nodes wait for which, on request: two streams that fork and join."""
    x = torch.ones(1 << 16, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    config = mt._ExperimentalConfig(enable_cuda_graph_dependencies=True)
    with ours(experimental_config=config) as prof:
        with torch.cuda.graph(graph):
            first = x + 1
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                left = first * 2
            right = first * 3
            torch.cuda.current_stream().wait_stream(side)
            left + right
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    assert prof.health().ok, prof.health()
    events = trace(prof)["traceEvents"]
    work = [e["args"] for e in events if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    arrows = collections.Counter(e["ph"] for e in events if e.get("cat") == "graph_dependency")
    counts = collections.Counter(len(args.get("graph dependencies", "?")) for args in work)
    print(f"graph edges: {len(work)} kernels, dependencies by their number {dict(counts)}, arrows {dict(arrows)}, "
          f"{mt.cuda_info().dependencies_lost} nodes lost")
    assert mt.cuda_info().dependencies_lost == 0, mt.cuda_info()
    assert len(work) == 40 and counts == {0: 10, 1: 20, 2: 10}, counts
    assert arrows == {"s": 40, "f": 40}, arrows
    times = {(args["correlation"], args["graph node id"]): (e["ts"], e["ts"] + e["dur"])
             for e in events if e.get("cat") == "kernel" and "graph node id" in (args := e["args"])}
    for args in work:  # the direction of the edges
        for before in args["graph dependencies"]:
            here, there = (args["correlation"], args["graph node id"]), (args["correlation"], before)
            assert times[there][1] <= times[here][0] + 0.01, (times[there], times[here])


def case_graph_step():
    """A whole training step in a graph: forward, backward and optimizer."""
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))
                                  for _ in range(20))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(64, 64, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with ours(with_modules=True) as prof:
        with torch.cuda.graph(graph):
            step()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    assert prof.health().ok, prof.health()
    events = trace(prof)["traceEvents"]
    work = [e["args"] for e in events if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    known = sum("captured op" in args for args in work)
    homeless = collections.Counter(args.get("captured op") for args in work if "captured module" not in args)
    print(f"captured step: {len(work)} kernels of replays, {known} with their op, "
          f"{len(work) - homeless.total()} with their module; without one: {dict(homeless)}")
    assert known >= 0.99 * len(work) and len(work) >= 1000, (known, len(work))
    # The loss, zero_grad and the optimizer are in no module.
    owned = {"aten::mm", "aten::sum", "aten::native_layer_norm_backward", "aten::gelu_backward"}
    assert not owned & set(homeless), homeless


def case_run_program():
    """mtprof run -- PROGRAM: the GPU's work of a program that knows nothing of us."""
    program = ("import torch\nx = torch.ones(2, 2, device='cuda')\ntorch.cuda.synchronize()\n"
               "for _ in range(1000):\n    x + x\n")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        done = subprocess.run([os.environ["MTPROF_COMMAND"], "run", "-o", path, "--", sys.executable, "-c", program],
                              capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    calls = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    kernels = [e for e in events if e.get("cat") == "kernel" and "elementwise" in e["name"]]
    print(f"mtprof run: {len(kernels)} kernels of a program; {done.stderr.splitlines()[2:3]}")
    assert len(kernels) >= 1000 and all(e["args"]["correlation"] in calls for e in kernels), len(kernels)


def case_nvtx():
    """torch's emit_nvtx under mtprof run: each op is a range."""
    program = ("import torch\nx = torch.ones(2, 2, device='cuda')\n"
               "with torch.autograd.profiler.emit_nvtx():\n    x + x\n"
               "torch.cuda.nvtx.range_push('user range')\ntorch.cuda.nvtx.range_pop()\n")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        done = subprocess.run([os.environ["MTPROF_COMMAND"], "run", "-o", path, "--", sys.executable, "-c", program],
                              capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        with open(path) as file:
            names = {e["name"] for e in json.load(file)["traceEvents"] if e.get("cat") == "user_annotation"}
    assert "user range" in names and any(name.startswith("aten::add") for name in names), (names, done.stderr)


def case_beside():
    """While torch.profiler has CUPTI ours says so, and records the host."""
    x = torch.ones(2, 2, device="cuda")
    with ours() as prof:
        x + x
    assert prof.health().ok and mt.cuda_info().records == 1
    with theirs() as other:
        x + x
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ours() as prof:
                x + x
    texts = [str(w.message) for w in caught]
    assert any("another profiler (torch.profiler, Nsight)" in text for text in texts), texts
    assert any(e.name == "aten::add" for e in prof.events())
    assert any("elementwise" in e.name for e in other.events()), "torch.profiler lost its kernels"


def case_torn_down():
    """With TEARDOWN_CUPTI=1 torch.profiler lets CUPTI go from the exit of a later call; a start waits for that."""
    x = torch.ones(2, 2, device="cuda")
    with theirs():
        x + x
    began = time.perf_counter()
    with ours() as prof:
        started = time.perf_counter()
        x + x
    print(f"after torch.profiler with TEARDOWN_CUPTI=1: {mt.cuda_info().missing or 'CUPTI is ours'} after "
          f"{(started - began) * 1e3:.0f} ms, {prof.health()}")
    assert mt.cuda_info().records == 1, mt.cuda_info()


def case_fork():
    x = torch.ones(2, 2, device="cuda")
    with ours() as prof:
        x + x
        child = os.fork()
        if child == 0:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with mt.profile():
                    torch.ones(2) + 1
            os._exit(0 if any("its child cannot" in str(w.message) for w in caught) else 3)
        assert os.waitpid(child, 0)[1] == 0
        x + x
    assert prof.health().ok and mt.cuda_info().records == 2, mt.cuda_info()


def case_killed():
    """A program that dies leaves the work of all but its last second in the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "killed.mtt")
        done = subprocess.run([sys.executable, __file__, "--case", "dying", path], capture_output=True, text=True)
        assert done.returncode == -9, done
        found = mt.load(path)
        kernels = sum(e.device_type == mt.DeviceType.CUDA for e in found.events())
        print(f"killed: {kernels} kernels in the file")
        assert kernels > 100


def case_dying(path):
    x = torch.ones(2, 2, device="cuda")
    prof = ours(path=path)
    prof.start()
    until = time.monotonic() + 2
    while time.monotonic() < until:
        x + x
    os.kill(os.getpid(), signal.SIGKILL)


CASES = ("cnn", "gpt", "tracks", "threads", "cycles", "busy", "memory", "in_flight", "schedule", "waits", "graph",
         "graph_ops", "graph_step", "graph_edges", "graph_destroyed", "run_program", "nvtx", "beside", "torn_down",
         "fork", "killed")


CASE_S = 90  # most cases take 5 to 20 s, of which importing torch is most
LONGER = {"cycles": 180, "run_program": 120, "nvtx": 120}


def run_case(name):
    """Its status, None where it took too long, and what it said. Whatever it started is ended with it."""
    environment = dict(os.environ, KINETO_LOG_LEVEL="99")
    if name == "torn_down":
        environment["TEARDOWN_CUPTI"] = "1"
    left = float(os.environ.get("MT_GPU_UNTIL", "inf")) - time.time()
    limit = min(1e9 if LONG else LONGER.get(name, CASE_S), left)
    if limit < 5:
        return None, "", "not begun: the time of all checks is over"
    child = subprocess.Popen([sys.executable, __file__, "--case", name], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        output, errors = child.communicate(timeout=limit - 2)
        return child.returncode, output, errors
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
    try:
        output, errors = child.communicate(timeout=5)
    except subprocess.TimeoutExpired:  # it cannot be ended while the driver holds it
        output, errors = "", ""
    return None, output, f"ended: it took longer than {limit - 2:.0f} s\n" + errors


ALONE = ("cnn", "gpt")  # they print durations


def timed_case(name):
    began = time.time()
    return *run_case(name), time.time() - began


def add(name):
    def run(self):
        beside = self.results.get(name)
        status, output, errors, seconds = beside.result() if beside else timed_case(name)
        print(output, end="")
        print(f"     {name}: {seconds:.1f} s", flush=True)
        self.assertEqual(status, 0, errors[-4000:])
    setattr(OnGpu, f"test_{name}", run)


class OnGpu(unittest.TestCase):
    results = {}

    @classmethod
    def setUpClass(cls):
        chosen = [word.split("test_")[-1] for word in sys.argv[1:]] or CASES
        with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 1) // 2))) as pool:
            cls.results = {name: pool.submit(timed_case, name) for name in chosen if name not in ALONE}


for case in CASES:
    add(case)

if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--case":
        import_all()
        globals()[f"case_{sys.argv[2]}"](*sys.argv[3:])
        sys.exit(0)
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad != 0)
