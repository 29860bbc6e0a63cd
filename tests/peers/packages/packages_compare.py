# SPDX-License-Identifier: Apache-2.0
"""Components of other people's packages on torch and on mindtorch_v2 in its place, side by side.

usage: packages_compare.py FOLDER all|short

Each takes 3 training steps from the same weights. Losses are equal within 1e-4 of the larger of 1 and the loss; the
third step's profile has the same ops at the level of the program, as often, but for those of differences.py. What
cannot run is in differences.py too, by the missing name; anything else that differs is a failure.
"""
import json
import os
import subprocess
import sys

from differences import CANNOT_RUN, PROFILES

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = ("models_images", "models_sequences", "parts", "models_transformers", "models_probability",
         "models_structures", "models_further")
SHORT = {"models_images": ("vit-pytorch: ViT", "vit-pytorch: CaiT", "vit-pytorch: PiT", "mlp-mixer-pytorch: MLPMixer"),
         "models_sequences": ("x-transformers: Decoder", "x-transformers: Decoder with RMSNorm and SwiGLU",
                              "linformer: LinformerLM"),
         "parts": ("einops: Rearrange, Reduce, EinMix", "einops: rearrange, repeat, einsum, pack",
                   "entmax: sparsemax and entmax15", "lion-pytorch: Lion", "safetensors: save_model and load_model",
                   "torchinfo: summary")}
CLOSE = 1e-4
LEAST = 0.9  # the part that must run


def results(role, folder, listed, names):
    """What run_components.py says, by component; and the end of its errors."""
    ours = ["-m", "mindtorch_v2"] if role == "follow" else []
    done = subprocess.run([sys.executable, "-W", "ignore", *ours, os.path.join(HERE, "run_components.py"), role, folder,
                           listed, *names], capture_output=True, text=True, check=False, timeout=550)
    lines = [json.loads(line[3:]) for line in done.stdout.splitlines() if line.startswith("=> ")]
    return {line["name"]: line for line in lines}, done.stderr.strip().splitlines()[-1:]


def furthest(ours, theirs):
    """The largest difference of losses."""
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs))


def judge(name, ours, theirs):
    """(what is shown, whether it passed: None where it cannot run, the ops that differ)."""
    if theirs is None or "error" in theirs:
        return f"not on torch itself: {(theirs or {}).get('error', 'it ended')}", False, set()
    if ours is None or "error" in ours:
        error = (ours or {}).get("error", "it ended")
        known = CANNOT_RUN.get(name)
        return f"does not run: {error}", None if known and known in error else False, set()
    away = furthest(ours["losses"], theirs["losses"])
    ops = set(ours["ops"]) | set(theirs["ops"])
    different = {op for op in ops if ours["ops"].get(op) != theirs["ops"].get(op)}
    unnamed = different - set(PROFILES)
    shown = f"loss {theirs['losses'][-1]:.6f}, away {away:.1e}, {len(ops)} ops"
    if different:
        shown += f", {len(different)} as often only with differences.py" if not unnamed else ""
    if unnamed:
        counts = (f"{op} {ours['ops'].get(op, 0)} not {theirs['ops'].get(op, 0)}" for op in sorted(unnamed))
        shown += "; " + ", ".join(counts)
    return shown, away <= CLOSE and not unnamed, different


def main():
    folder, chosen = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    passed, failed, skipped, seen = 0, 0, 0, set()
    for listed in LISTS if chosen == "all" else SHORT:
        names = () if chosen == "all" else SHORT[listed]
        theirs, said_theirs = results("lead", folder, listed, names)
        ours, said_ours = results("follow", folder, listed, names)
        wanted = names or list(theirs) or [listed]
        if len(ours) < len(theirs) or not theirs:
            print(f"{listed}: ended early: {said_ours or said_theirs}")
            failed += 1
        for name in wanted:
            shown, good, different = judge(name, ours.get(name), theirs.get(name))
            seen |= different
            passed, failed, skipped = passed + (good is True), failed + (good is False), skipped + (good is None)
            print(f"{'ok  ' if good else 'FAIL' if good is False else 'left'} {name:60} {shown}")
    for op in sorted(set(PROFILES) - seen if chosen == "all" else ()):
        print(f"FAIL differences.py: no component differs in {op} any more")
        failed += 1
    if passed < LEAST * (passed + skipped):
        print(f"FAIL only {passed} of {passed + skipped} run")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
