# SPDX-License-Identifier: Apache-2.0
"""The Python packages compared with torch: bench_python.py [--dir FOLDER] [--quick] [NAME...]

Runs python_workloads.py with mindtorch_v2 and with torch in turn, takes the best of each, and prints one JSON
line a figure, with torch's own value and the ratio. torch comes from the environment of `./dev peers`
(PEER_TORCH names another Python); without it ratios are left out, and a line on stderr says so.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# figure: (key of the workload, factor, unit, limit, ratio to torch that is at least wanted)
FIGURES = {
    "python_add_2x2_ns": ("add_2x2", 1, "ns", 250, 4),
    "python_record_plain_ns": ("record_plain", 1, "ns", 35, 10),
    "python_record_shapes_ns": ("record_shapes", 1, "ns", 45, 10),
    "python_record_memory_ns": ("record_memory", 1, "ns", 60, 10),
    "python_record_all_ns": ("record_all", 1, "ns", 100, 15),
    "python_op_to_event_ns": ("whole_op", 1, "ns", 300, 15),
    "python_stack_per_frame_ns": ("record_per_frame", 1, "ns", 15, None),
    "python_record_function_off_ns": ("record_function_off", 1, "ns", 100, None),
    "python_record_function_on_ns": ("record_function_on", 1, "ns", 130, None),
    "python_stop_1m_ms": ("stop_s", 1e3, "ms", 5, None),
    "python_key_averages_1m_s": ("key_averages_s", 1, "s", 0.1, None),
    "python_first_event_1m_s": ("first_event_s", 1, "s", 0.1, None),
    "python_iterate_us": ("iterate_s", 1, "us", 0.6, None),
    "python_export_chrome_1m_s": ("export_chrome_s", 1, "s", 0.15, None),
}


def worker(python, module, events, quick, folder):
    """The figures of one process; its PYTHONPATH is ours where it runs our packages."""
    env = dict(os.environ, OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99")
    if module == "torch":
        env.pop("PYTHONPATH", None)
    done = subprocess.run([python, HERE / "python_workloads.py", module, str(events), "quick" if quick else "full"],
                          cwd=folder, env=env, stdout=subprocess.PIPE, text=True, timeout=400)
    if done.returncode != 0:
        sys.exit(f"bench_python: {module} ended with status {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    found["iterate_s"] *= 1e6 / found["events"]  # one event, in microseconds
    for key in ("stop_s", "key_averages_s", "first_event_s", "export_chrome_s"):
        found[key] *= 1e6 / events  # as for a million
    return found


def torch_python():
    given = os.environ.get("PEER_TORCH", str(ROOT / "build" / "peers" / "torch" / "venv" / "bin" / "python"))
    return given if os.path.exists(given) else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", default=".")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [n for n in FIGURES if not options.names or any(word in n for word in options.names)]
    if not chosen:
        return
    peer = torch_python()
    if peer is None:
        print("bench_python: no torch to compare with (./dev peers torch makes its environment)", file=sys.stderr)
    ours, theirs = [], []
    for _ in range(1 if options.quick else 3):
        ours.append(worker(sys.executable, "mindtorch_v2", 1_000_000, options.quick, options.dir))
        if peer is not None:
            theirs.append(worker(peer, "torch", 50_000, options.quick, options.dir))
    for name in chosen:
        key, factor, unit, limit, ratio = FIGURES[name]
        value = min(found[key] for found in ours) * factor
        line = {"bench": name, "value": round(value, 3), "unit": unit, "limit": limit}
        fine = round(value, 2) <= limit
        if theirs:
            other = min(found[key] for found in theirs) * factor
            line.update(torch=round(other, 3), ratio=round(other / value, 1) if value > 0 else None)
            fine = fine and (ratio is None or value <= 0 or other / value >= ratio)
        line["ok"] = fine
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
