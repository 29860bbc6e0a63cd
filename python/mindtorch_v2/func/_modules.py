# SPDX-License-Identifier: Apache-2.0
"""Modules as functions of their parameters: functional_call, stack_module_state."""

import mindtorch_v2 as torch


def _places(module):
    """{name: (owner, attribute)} of all parameters and buffers, and the other names of tied ones."""
    places, names_of = {}, {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for attribute, value in table.items():
                name = f"{prefix}.{attribute}" if prefix else attribute
                places[name] = (table, attribute)
                if value is not None:
                    names_of.setdefault(id(value), []).append(name)
    return places, {name: names for names in names_of.values() for name in names}


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """module(*args, **kwargs) with other parameters and buffers, by their names; the module's own come back."""
    if isinstance(parameter_and_buffer_dicts, dict):
        given = dict(parameter_and_buffer_dicts)
    else:
        given = {}
        for one in parameter_and_buffer_dicts:
            if set(one) & set(given):
                raise ValueError(
                    f"{sorted(set(one) & set(given))[0]} appears in multiple dictionaries; behavior of "
                    "functional call is ambiguous"
                )
            given.update(one)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    places, tied = _places(module)
    if strict:
        _check(module, given, places)
    if tie_weights:
        for name, value in list(given.items()):
            for other in tied.get(name, ()):
                given.setdefault(other, value)
    before = [(table, attribute, table[attribute]) for name, (table, attribute) in places.items() if name in given]
    try:
        for name, value in given.items():
            if name in places:
                table, attribute = places[name]
                table[attribute] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, attribute, value in before:
            table[attribute] = value


def _check(module, given, places):
    unexpected = sorted(set(given) - set(places))
    missing = [name for name in places if name not in given]
    lines = []
    if unexpected:
        lines.append("Unexpected key(s): " + ", ".join(map(repr, unexpected)) + ".")
    if missing:
        lines.append("Missing key(s): " + ", ".join(map(repr, missing)) + ".")
    if lines:
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(type(module).__name__, "\n\t".join(lines))
        )


def stack_module_state(models):
    """({name: parameters of all models, stacked}, {name: buffers}): for vmap() over functional_call()."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")

    def stacked(of):
        names = [name for name, _ in of(models[0])]
        columns = {name: [dict(of(model))[name] for model in models] for name in names}
        made = {}
        for name, values in columns.items():
            made[name] = torch.stack([value.detach() for value in values])
            if all(value.requires_grad for value in values):
                made[name].requires_grad_()
        return made

    return stacked(lambda model: model.named_parameters()), stacked(lambda model: model.named_buffers())
