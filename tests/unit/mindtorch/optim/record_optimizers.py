#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes optimizer_cases.def: five steps of PyTorch's own optimizers in float64, every option.

    python record_optimizers.py > optimizer_cases.def         (wants PyTorch; not part of the tests)

Two parameters: three numbers, and a 2 x 2 matrix that has no gradient in the first step. Element i
of parameter p has, in step t, the gradient sin(0.7 (i + 1) + 1.3 t + 0.5 p) (1 + 0.1 i).
"""
import math

import torch

KINDS = {"SGD": torch.optim.SGD, "ADAM": torch.optim.Adam, "ADAMW": torch.optim.AdamW,
         "RMSPROP": torch.optim.RMSprop, "ADAGRAD": torch.optim.Adagrad,
         "ADADELTA": torch.optim.Adadelta, "ADAMAX": torch.optim.Adamax, "NADAM": torch.optim.NAdam,
         "RADAM": torch.optim.RAdam, "ASGD": torch.optim.ASGD, "RPROP": torch.optim.Rprop}
FIELDS = {"betas": None, "initial_accumulator_value": "initial_accumulator"}
CASES = [
    ("sgd_defaults", "SGD", {}),
    ("sgd_lr", "SGD", {"lr": 0.1}),
    ("sgd_momentum", "SGD", {"lr": 0.1, "momentum": 0.9}),
    ("sgd_dampening", "SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("sgd_nesterov", "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("sgd_weight_decay", "SGD", {"lr": 0.1, "weight_decay": 0.05}),
    ("sgd_maximize", "SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.05}),
    ("sgd_all", "SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1,
                        "maximize": True}),
    ("adam_defaults", "ADAM", {}),
    ("adam_lr", "ADAM", {"lr": 0.05}),
    ("adam_betas", "ADAM", {"lr": 0.05, "betas": (0.7, 0.8)}),
    ("adam_eps", "ADAM", {"lr": 0.05, "eps": 0.1}),
    ("adam_weight_decay", "ADAM", {"lr": 0.05, "weight_decay": 0.1}),
    ("adam_amsgrad", "ADAM", {"lr": 0.05, "betas": (0.5, 0.3), "amsgrad": True}),
    ("adam_maximize", "ADAM", {"lr": 0.05, "maximize": True, "weight_decay": 0.1}),
    ("adamw_defaults", "ADAMW", {}),
    ("adamw_weight_decay", "ADAMW", {"lr": 0.05, "weight_decay": 0.3}),
    ("adamw_no_decay", "ADAMW", {"lr": 0.05, "weight_decay": 0.0}),
    ("adamw_amsgrad", "ADAMW", {"lr": 0.05, "betas": (0.5, 0.3), "amsgrad": True}),
    ("adamw_maximize", "ADAMW", {"lr": 0.05, "maximize": True}),
    ("rmsprop_defaults", "RMSPROP", {}),
    ("rmsprop_alpha", "RMSPROP", {"lr": 0.02, "alpha": 0.5, "eps": 0.01}),
    ("rmsprop_momentum", "RMSPROP", {"lr": 0.02, "momentum": 0.9}),
    ("rmsprop_centered", "RMSPROP", {"lr": 0.02, "alpha": 0.9, "centered": True}),
    ("rmsprop_weight_decay", "RMSPROP", {"lr": 0.02, "weight_decay": 0.2}),
    ("rmsprop_maximize", "RMSPROP", {"lr": 0.02, "maximize": True}),
    ("rmsprop_all", "RMSPROP", {"lr": 0.02, "alpha": 0.8, "momentum": 0.7, "centered": True,
                                "weight_decay": 0.1, "maximize": True}),
    ("adagrad_defaults", "ADAGRAD", {}),
    ("adagrad_lr_decay", "ADAGRAD", {"lr": 0.1, "lr_decay": 0.2}),
    ("adagrad_initial", "ADAGRAD", {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 0.01}),
    ("adagrad_weight_decay", "ADAGRAD", {"lr": 0.1, "weight_decay": 0.2}),
    ("adagrad_maximize", "ADAGRAD", {"lr": 0.1, "maximize": True}),
    ("adadelta_defaults", "ADADELTA", {}),
    ("adadelta_all", "ADADELTA", {"lr": 0.5, "rho": 0.7, "eps": 0.01, "weight_decay": 0.1,
                                  "maximize": True}),
    ("adamax_defaults", "ADAMAX", {}),
    ("adamax_all", "ADAMAX", {"lr": 0.05, "betas": (0.7, 0.8), "eps": 0.1, "weight_decay": 0.1,
                              "maximize": True}),
    ("nadam_defaults", "NADAM", {}),
    ("nadam_decoupled", "NADAM", {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("nadam_all", "NADAM", {"lr": 0.05, "betas": (0.7, 0.8), "eps": 0.1, "weight_decay": 0.1,
                            "momentum_decay": 0.2, "maximize": True}),
    ("radam_defaults", "RADAM", {}),
    ("radam_rectified", "RADAM", {"lr": 0.05, "betas": (0.5, 0.99)}),
    ("radam_decoupled", "RADAM", {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("radam_all", "RADAM", {"lr": 0.05, "betas": (0.7, 0.8), "eps": 0.1, "weight_decay": 0.1,
                            "maximize": True}),
    ("asgd_defaults", "ASGD", {}),
    ("asgd_all", "ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 1.0, "weight_decay": 0.1,
                          "maximize": True}),
    ("rprop_defaults", "RPROP", {}),
    ("rprop_all", "RPROP", {"lr": 0.3, "etas": (0.3, 1.7), "step_sizes": (0.02, 0.4),
                            "maximize": True}),
]


def run(kind, options):
    parameters = [torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True),
                  torch.tensor([[0.25, 1.5], [-0.75, 3.0]], dtype=torch.float64,
                               requires_grad=True)]
    optimizer = KINDS[kind](parameters, **options)
    for t in range(5):
        for p, parameter in enumerate(parameters):
            if p == 1 and t == 0:
                continue
            grads = [math.sin(0.7 * (i + 1) + 1.3 * t + 0.5 * p) * (1 + 0.1 * i)
                     for i in range(parameter.numel())]
            parameter.grad = torch.tensor(grads, dtype=torch.float64).reshape(parameter.shape)
        optimizer.step()
    return [x for p in parameters for x in p.detach().reshape(-1).tolist()]


def fields(options):
    out = []
    for key, value in options.items():
        if key == "betas":
            out += [f"o->beta1 = {value[0]!r}", f"o->beta2 = {value[1]!r}"]
        elif key in ("etas", "step_sizes"):
            names = ("etaminus", "etaplus") if key == "etas" else ("step_size_min", "step_size_max")
            out += [f"o->{name} = {number!r}" for name, number in zip(names, value)]
        else:
            text = str(value).lower() if isinstance(value, bool) else repr(value)
            out.append(f"o->{FIELDS.get(key, key)} = {text}")
    return "; ".join(out) or "(void)o"


print("/* SPDX-License-Identifier: Apache-2.0\n *\n"
      " * CASE(name, kind, options, the seven numbers after five steps): what PyTorch gives. Made\n"
      " * by record_optimizers.py, which says how.\n */")
for name, kind, options in CASES:
    numbers = ", ".join(repr(x) for x in run(kind, options))
    print(f"CASE({name}, {kind}, {{ {fields(options)}; }},\n     {numbers})")
