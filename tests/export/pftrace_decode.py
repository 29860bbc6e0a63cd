# SPDX-License-Identifier: Apache-2.0
"""Decodes a Perfetto trace against a schema of the documented fields.

Written from the public description of TracePacket and its parts, not from our encoder: what is not in
SCHEMA, has another wire type, or refers to something that was not defined before, is an error.

    python3 pftrace_decode.py FILE        prints tracks, slices and counters
"""

import struct
import sys
from collections import defaultdict

# message: {field: (name, type)}; type: a message's name, or int, sint, bool, double, fixed64, str.
SCHEMA = {
    "Trace": {1: ("packet", "TracePacket")},
    "TracePacket": {
        6: ("clock_snapshot", "ClockSnapshot"),
        8: ("timestamp", "int"),
        10: ("trusted_packet_sequence_id", "int"),
        11: ("track_event", "TrackEvent"),
        12: ("interned_data", "InternedData"),
        13: ("sequence_flags", "int"),
        58: ("timestamp_clock_id", "int"),
        59: ("trace_packet_defaults", "TracePacketDefaults"),
        60: ("track_descriptor", "TrackDescriptor"),
        87: ("first_packet_on_sequence", "bool"),
        89: ("trace_uuid", "TraceUuid"),
    },
    "TraceUuid": {1: ("msb", "int"), 2: ("lsb", "int")},
    "ClockSnapshot": {1: ("clocks", "Clock"), 2: ("primary_trace_clock", "int")},
    "Clock": {
        1: ("clock_id", "int"),
        2: ("timestamp", "int"),
        3: ("is_incremental", "bool"),
        4: ("unit_multiplier_ns", "int"),
    },
    "TracePacketDefaults": {
        11: ("track_event_defaults", "TrackEventDefaults"),
        58: ("timestamp_clock_id", "int"),
    },
    "TrackEventDefaults": {11: ("track_uuid", "int")},
    "TrackDescriptor": {
        1: ("uuid", "int"),
        2: ("name", "str"),
        3: ("process", "ProcessDescriptor"),
        4: ("thread", "ThreadDescriptor"),
        5: ("parent_uuid", "int"),
        8: ("counter", "CounterDescriptor"),
    },
    "ProcessDescriptor": {1: ("pid", "int"), 6: ("process_name", "str")},
    "ThreadDescriptor": {1: ("pid", "int"), 2: ("tid", "int"), 5: ("thread_name", "str")},
    "CounterDescriptor": {3: ("unit", "int")},
    "InternedData": {
        1: ("event_categories", "Interned"),
        2: ("event_names", "Interned"),
        3: ("debug_annotation_names", "Interned"),
        29: ("debug_annotation_string_values", "Interned"),
    },
    "Interned": {1: ("iid", "int"), 2: ("text", "str")},
    "TrackEvent": {
        3: ("category_iids", "int"),
        4: ("debug_annotations", "DebugAnnotation"),
        6: ("legacy_event", "LegacyEvent"),
        9: ("type", "int"),
        10: ("name_iid", "int"),
        11: ("track_uuid", "int"),
        23: ("name", "str"),
        30: ("counter_value", "sint"),
        44: ("double_counter_value", "double"),
        47: ("flow_ids", "fixed64"),
        48: ("terminating_flow_ids", "fixed64"),
    },
    "LegacyEvent": {2: ("phase", "int"), 6: ("unscoped_id", "int"), 12: ("bind_to_enclosing", "bool")},
    "DebugAnnotation": {
        1: ("name_iid", "int"),
        2: ("bool_value", "bool"),
        3: ("uint_value", "int"),
        4: ("int_value", "sint"),
        5: ("double_value", "double"),
        6: ("string_value", "str"),
        10: ("name", "str"),
        17: ("string_value_iid", "int"),
    },
}
REPEATED = {
    "packet", "clocks", "event_categories", "event_names", "debug_annotation_names",
    "debug_annotation_string_values", "category_iids", "debug_annotations", "flow_ids",
    "terminating_flow_ids",
}
# At most one of these in a packet (TracePacket.data).
DATA = {"clock_snapshot", "track_event", "track_descriptor", "trace_uuid"}

CLEARED, NEEDS_STATE = 1, 2
ARROW, BEGIN, END, INSTANT, COUNTER = 0, 1, 2, 3, 4  # ARROW: a legacy event has no type
REALTIME, MONOTONIC = 1, 3


class Bad(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Bad(f"varint at {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (1 << 64) - 1, at


def read_field(data, at, wire):
    if wire == 0:
        return varint(data, at)
    if wire == 1:
        if at + 8 > len(data):
            raise Bad("fixed64 past the end")
        return data[at:at + 8], at + 8
    if wire == 2:
        length, at = varint(data, at)
        if at + length > len(data):
            raise Bad(f"{length} bytes at {at} reach past the end")
        return data[at:at + length], at + length
    raise Bad(f"wire type {wire}")


WIRES = {"int": 0, "sint": 0, "bool": 0, "double": 1, "fixed64": 1}


def convert(value, kind):
    if kind == "int":
        return value
    if kind == "sint":
        return value - (1 << 64) if value >> 63 else value
    if kind == "bool":
        if value > 1:
            raise Bad(f"bool {value}")
        return bool(value)
    if kind == "double":
        return struct.unpack("<d", value)[0]
    if kind == "fixed64":
        return struct.unpack("<Q", value)[0]
    if kind == "str":
        return bytes(value).decode("utf-8")  # strict: PF3
    return decode(value, kind)


def decode(data, message):
    out = {}
    at = 0
    data = memoryview(data)
    while at < len(data):
        tag, at = varint(data, at)
        field, wire = tag >> 3, tag & 7
        value, at = read_field(data, at, wire)
        if field not in SCHEMA[message]:
            raise Bad(f"{message} has no field {field}")
        name, kind = SCHEMA[message][field]
        if WIRES.get(kind, 2) != wire:
            raise Bad(f"{message}.{name} with wire type {wire}")
        value = convert(value, kind)
        if name in REPEATED:
            out.setdefault(name, []).append(value)
        elif name in out:
            raise Bad(f"{message}.{name} twice")
        else:
            out[name] = value
    return out


class Sequence:
    def __init__(self):
        self.valid = False

    def clear(self, defaults):
        self.valid = True
        self.defaults = defaults
        self.interned = {name: {} for name, _ in SCHEMA["InternedData"].values()}
        self.incremental = {}  # clock: last value


class Trace:
    """tracks: {uuid: descriptor}; slices: [dict]; counters: [(time, uuid, value)]; arrows: {(name, id): [(phase, slice)]}."""

    def __init__(self, data):
        self.tracks = {}
        self.events = []  # (time, order, event)
        self.clocks = {}
        self.packets = 0
        self.sequences = defaultdict(Sequence)
        for packet in decode(data, "Trace").get("packet", []):
            self.packets += 1
            self.take(packet)
        self.slices, self.instants, self.counters, self.arrows = [], [], [], defaultdict(list)
        self.nest()

    def take(self, packet):
        if len(DATA & packet.keys()) > 1:
            raise Bad(f"packet with {DATA & packet.keys()}")
        if packet.get("trusted_packet_sequence_id", 0) == 0:
            raise Bad("packet without a sequence")
        sequence = self.sequences[packet["trusted_packet_sequence_id"]]
        flags = packet.get("sequence_flags", 0)
        if flags & CLEARED:
            sequence.clear(packet.get("trace_packet_defaults", {}))
        elif "trace_packet_defaults" in packet:
            raise Bad("defaults without clearing")
        if flags & NEEDS_STATE and not sequence.valid:
            raise Bad("state needed before it was cleared")
        for name, entries in packet.get("interned_data", {}).items():
            for entry in entries:
                known = sequence.interned[name]
                if known.get(entry["iid"], entry["text"]) != entry["text"] or entry["iid"] == 0:
                    raise Bad(f"{name} {entry['iid']} means two things")
                known[entry["iid"]] = entry["text"]
        if "clock_snapshot" in packet:
            self.take_clocks(sequence, packet["clock_snapshot"])
        if "track_descriptor" in packet:
            descriptor = packet["track_descriptor"]
            if self.tracks.setdefault(descriptor["uuid"], descriptor) != descriptor:
                raise Bad(f"track {descriptor['uuid']} described twice, differently")
        if "track_event" in packet:
            if not flags & NEEDS_STATE:
                raise Bad("event without NEEDS_STATE")
            self.take_event(packet, sequence)

    def take_clocks(self, sequence, snapshot):
        now = {clock["clock_id"]: clock for clock in snapshot["clocks"]}
        if MONOTONIC not in now:
            raise Bad("snapshot without the trace's clock")
        for clock_id, clock in now.items():
            if 64 <= clock_id < 128:
                if not clock.get("is_incremental") or clock.get("unit_multiplier_ns", 1) != 1:
                    raise Bad("sequence clock")
                if clock["timestamp"] != now[MONOTONIC]["timestamp"]:
                    raise Bad("sequence clock with an offset")
                sequence.incremental[clock_id] = clock["timestamp"]
        if REALTIME in now:
            self.clocks = {clock_id: clock["timestamp"] for clock_id, clock in now.items()}
            self.primary = snapshot.get("primary_trace_clock")

    def take_event(self, packet, sequence):
        clock = packet.get("timestamp_clock_id", sequence.defaults.get("timestamp_clock_id"))
        time = packet["timestamp"]
        if clock in sequence.incremental:
            time += sequence.incremental[clock]
            sequence.incremental[clock] = time
        elif clock != MONOTONIC:
            raise Bad(f"unknown clock {clock}")
        raw = packet["track_event"]
        event = {"time": time, "type": raw.get("type", ARROW), "legacy": raw.get("legacy_event")}
        if (event["type"] == ARROW) != (event["legacy"] is not None):
            raise Bad("an event without a type is one end of an arrow")
        default = sequence.defaults.get("track_event_defaults", {}).get("track_uuid")
        event["track"] = raw.get("track_uuid", default)
        interned = sequence.interned
        if "name_iid" in raw:
            event["name"] = interned["event_names"][raw["name_iid"]]
        elif "name" in raw:
            event["name"] = raw["name"]
        event["categories"] = [interned["event_categories"][i] for i in raw.get("category_iids", [])]
        args = event["args"] = {}
        for item in raw.get("debug_annotations", []):
            key = item.get("name")
            if "name_iid" in item:
                key = interned["debug_annotation_names"][item["name_iid"]]
            values = [v for k, v in item.items() if k.endswith("_value")]
            if "string_value_iid" in item:
                values.append(interned["debug_annotation_string_values"][item["string_value_iid"]])
            if len(values) != 1:
                raise Bad(f"annotation {key} with {len(values)} values")
            args[key] = values[0]
        event["flows"] = raw.get("flow_ids", []) + raw.get("terminating_flow_ids", [])
        event["value"] = raw.get("counter_value", raw.get("double_counter_value"))
        self.events.append((time, len(self.events), event))

    def nest(self):
        """As the trace processor does: in order of time, ties in the order of the file."""
        open_slices = defaultdict(list)
        for time, _, event in sorted(self.events, key=lambda e: e[:2]):
            if event["track"] not in self.tracks:
                raise Bad(f"event on track {event['track']}, which nothing describes")
            stack = open_slices[event["track"]]
            if event["type"] == BEGIN:
                event["depth"] = len(stack)
                event["around"] = stack[-1] if stack else None
                stack.append(event)
            elif event["type"] == END:
                if not stack:
                    raise Bad(f"end without begin at {time}")
                begin = stack.pop()
                begin["end"] = time
                begin["args"].update(event["args"])
                self.slices.append(begin)
            elif event["type"] == ARROW:
                if not stack:
                    raise Bad(f"an arrow's end at {time} outside of all slices")
                self.arrows[event["name"], event["legacy"]["unscoped_id"]].append(
                    (chr(event["legacy"]["phase"]), stack[-1]))
            elif event["type"] == INSTANT:
                self.instants.append(event)
            elif event["type"] == COUNTER:
                if "counter" not in self.tracks[event["track"]]:
                    raise Bad("value on a track that is no counter")
                self.counters.append((time, event["track"], event["value"]))
            else:
                raise Bad(f"event type {event['type']}")
        left = sum(map(len, open_slices.values()))
        if left:
            raise Bad(f"{left} slices without end")


def load(path):
    with open(path, "rb") as file:
        return Trace(file.read())


def main():
    trace = load(sys.argv[1])
    for uuid, track in trace.tracks.items():
        print("track", uuid, track)
    for s in sorted(trace.slices, key=lambda s: (s["track"], s["time"])):
        print(s["track"], s["time"], s["end"], "  " * s["depth"] + s["name"], s["args"])
    for counter in trace.counters:
        print("counter", *counter)
    return 0


if __name__ == "__main__":
    sys.exit(main())
