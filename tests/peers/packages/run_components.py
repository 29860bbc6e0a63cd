# SPDX-License-Identifier: Apache-2.0
"""Runs components with whatever torch is here: takes 3 training steps of each, and says what happened.

usage: run_components.py lead|follow FOLDER LIST NAME...

LIST: a module that has components (models_images, ...). NAME: "package: component", all of the list where none is
given. `lead` stores each module's first weights in FOLDER; `follow` begins with them. A line of JSON for each: losses,
the profiled step's ops by name, or the error.
"""
import importlib
import json
import os
import re
import sys
import traceback
import warnings

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins")]
warnings.simplefilter("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")

import torch  # noqa: E402

import component  # noqa: E402

STEPS = 3


def tensors_of(module):
    """Everything that a step depends on: also buffers that are not in the state_dict."""
    return {**dict(module.named_buffers()), **module.state_dict()}


def share(lead, path, module):
    """The same weights in both libraries."""
    if lead:
        torch.save({name: tensor.detach() for name, tensor in tensors_of(module).items()
                    if isinstance(tensor, torch.Tensor)}, path)
        return
    stored, own = torch.load(path), tensors_of(module)
    own = {name: tensor for name, tensor in own.items() if isinstance(tensor, torch.Tensor)}
    if set(stored) != set(own):
        raise AssertionError(f"names in the state_dict differ: {sorted(set(stored) ^ set(own))[:4]}")
    with torch.no_grad():
        for name, tensor in own.items():
            if tensor.shape != stored[name].shape or tensor.dtype != stored[name].dtype:
                raise AssertionError(f"{name}: {tuple(tensor.shape)} {tensor.dtype}, not {tuple(stored[name].shape)} "
                                     f"{stored[name].dtype}")
            tensor.copy_(stored[name])


def users_ops(prof):
    """How often the program calls which op: not other ops, the backward pass or an optimizer of torch's."""
    found = {}
    for event in prof.events():
        around = event.cpu_parent
        while around is not None and not around.name.startswith(("aten::", "autograd::", "Optimizer.")):
            around = around.cpu_parent
        if around is None and event.name.startswith("aten::"):
            found[event.name] = found.get(event.name, 0) + 1
    return found


def run(make, lead, path):
    """What happened in one component."""
    torch.manual_seed(1)
    made = make()
    module, loss = made[:2]
    for part in module.modules():
        if "Dropout" in type(part).__name__ and isinstance(getattr(part, "p", None), float):
            part.p = 0.0
    share(lead, path, module)
    module.train()
    optimizer = (made[2] if len(made) > 2 else component.sgd)(
        [parameter for parameter in module.parameters() if parameter.requires_grad])
    losses, ops = [], {}

    def step():
        optimizer.zero_grad()
        value = loss(module)
        value.backward()
        optimizer.step()
        losses.append(float(value))
    for i in range(STEPS):
        if i < STEPS - 1:
            step()
        else:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
                step()
            ops = users_ops(prof)
    return {"losses": losses, "ops": ops}


def main():
    role, folder, listed, *names = sys.argv[1:]
    importlib.import_module(listed)
    for package, components in component.COMPONENTS.items():
        for name, make in components.items():
            full = f"{package}: {name}"
            if names and full not in names:
                continue
            path = os.path.join(folder, re.sub(r"[^\w]+", "_", full) + ".pt")
            try:
                said = run(make, role == "lead", path)
            except Exception as error:  # a component's failure is its result
                text = f"{type(error).__name__}: {error}".splitlines()[0][:160]
                said = {"error": text, "trace": traceback.format_exc()[-3000:]}
            print("=> " + json.dumps({"name": full, **said}), flush=True)


if __name__ == "__main__":
    main()
