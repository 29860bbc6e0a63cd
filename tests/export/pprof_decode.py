# SPDX-License-Identifier: Apache-2.0
"""Decodes pprof's profile.proto.

Written from the published description of the format, not from our encoder: a field that it does not have, a
wire type that is not the field's, or an id that nothing defines is an error.
"""

PROFILE = {1: "sample_type", 2: "sample", 4: "location", 5: "function", 6: "string", 9: "time_nanos",
           10: "duration_nanos", 14: "default_sample_type"}
VARINT, BYTES = 0, 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value - (1 << 64) if value >> 63 else value, at
        if shift > 63:
            raise ValueError(f"a varint of more than ten bytes at {at}")


def fields(data):
    """(field, wire type, value) of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == VARINT:
            value, at = varint(data, at)
        elif tag & 7 == BYTES:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            if len(value) != length:
                raise ValueError("a field goes past the end")
        else:
            raise ValueError(f"wire type {tag & 7} of field {tag >> 3}")
        yield tag >> 3, tag & 7, value


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def message(data, names):
    found = {}
    for field, wire, value in fields(data):
        name, wanted = names[field]
        if wire != wanted or name in found:
            raise ValueError(f"field {name}")
        found[name] = value
    return found


def decode(data):
    """{"types": [(type, unit)], "default": type, "samples": [(path, values)], "time": ns, "duration": ns}; a path is
    a list of (function, file, line), outermost first."""
    strings, types, samples, functions, locations, others = [], [], [], {}, {}, {}
    for field, wire, value in fields(data):
        name = PROFILE[field]
        if name == "string":
            strings.append(value.decode("utf-8"))
        elif name == "sample_type":
            types.append(message(value, {1: ("type", VARINT), 2: ("unit", VARINT)}))
        elif name == "sample":
            samples.append(message(value, {1: ("path", BYTES), 2: ("values", BYTES)}))
        elif name == "function":
            function = message(value, {1: ("id", VARINT), 2: ("name", VARINT), 3: ("system", VARINT),
                                       4: ("file", VARINT)})
            functions[function["id"]] = function
        elif name == "location":
            location = message(value, {1: ("id", VARINT), 4: ("line", BYTES)})
            locations[location["id"]] = message(location["line"], {1: ("function", VARINT), 2: ("line", VARINT)})
        else:
            others[name] = value
    if strings[0] != "":
        raise ValueError("string 0 is not empty")

    def place(id):
        line = locations[id]
        function = functions[line["function"]]
        return strings[function["name"]], strings[function["file"]], line.get("line", 0)

    found = []
    for sample in samples:
        values = numbers(sample["values"])
        if len(values) != len(types):
            raise ValueError(f"{len(values)} values of {len(types)} types")
        found.append(([place(id) for id in reversed(numbers(sample["path"]))], values))
    return {"types": [(strings[t["type"]], strings[t["unit"]]) for t in types],
            "default": strings[others["default_sample_type"]], "samples": found,
            "time": others.get("time_nanos", 0), "duration": others.get("duration_nanos", 0)}
