#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our Perfetto files, read with the schema that Perfetto publishes: perfetto_check.py MTPROF TRACE...

Perfetto's trace processor cannot be had without its own download site (the package fetches it at run time), but
its protobuf classes can. Of each file:
  1. the schema knows every field;
  2. times are found by the rules of the format (sequences, increments of their clock), slices nest on their track;
  3. names, counts and times of the host's slices, and of the device's work on the tracks of its queues, are those of
     `mtprof export csv`, which knows nothing of this format.
"""
import csv
import io
import subprocess
import sys
from collections import Counter

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

MONOTONIC, CLEARED = 3, schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
HOST, DEVICE = ("op", "scope", "step", "runtime"), ("kernel", "copy", "set")


class Sequence:
    """What packets of one sequence define for those that follow."""

    def __init__(self):
        self.names, self.notes, self.track, self.clock, self.now = {}, {}, 0, MONOTONIC, 0


def unknown(message, path=""):
    """Fields that the schema has not, as paths."""
    for field in UnknownFieldSet(message):
        yield "%s.%d" % (path, field.field_number)
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            many = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            for one in many:
                yield from unknown(one, "%s.%s" % (path, descriptor.name))


def time_of(packet, sequence):
    clock = packet.timestamp_clock_id or sequence.clock
    if clock == MONOTONIC:
        return packet.timestamp
    sequence.now += packet.timestamp  # a sequence's own clock counts increments
    return sequence.now


def slices_of(trace):
    """(name, track, start, end) of all slices but those made of stacks, tracks by uuid; or what is wrong."""
    sequences, tracks, open_by_track, done = {}, {}, {}, []
    for packet in trace.packet:
        sequence = sequences.setdefault(packet.trusted_packet_sequence_id, Sequence())
        if packet.sequence_flags & CLEARED:
            sequence.names = {}
        for name in packet.interned_data.event_names:
            sequence.names[name.iid] = name.name
        for name in packet.interned_data.debug_annotation_names:
            sequence.notes[name.iid] = name.name
        if packet.HasField("trace_packet_defaults"):
            sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
            sequence.clock = packet.trace_packet_defaults.timestamp_clock_id or MONOTONIC
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == sequence.clock and clock.is_incremental:
                sequence.now = clock.timestamp
        if not packet.HasField("track_event"):
            continue
        event, now = packet.track_event, time_of(packet, sequence)
        track = event.track_uuid or sequence.track
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            name = event.name or sequence.names[event.name_iid]
            frame = any(sequence.notes.get(note.name_iid) == "sampled" for note in event.debug_annotations)
            open_by_track.setdefault(track, []).append((name, now, frame))
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            name, start, frame = open_by_track[track].pop()
            if now < start:
                raise ValueError("%s ends at %d, before %d" % (name, now, start))
            if not frame:
                done.append((name, track, start, now))
    left = [names[0] for stack in open_by_track.values() for names in stack]
    if left:
        raise ValueError("%d slices do not end: %s" % (len(left), left[:5]))
    return done, tracks


def events_of(command, path):
    run = subprocess.run([command, "export", "-q", "-o", "-", "csv", path], check=True, capture_output=True,
                         timeout=120)
    return list(csv.DictReader(io.StringIO(run.stdout.decode())))


def check(command, path, tell):
    run = subprocess.run([command, "export", "-q", "-o", "-", "perfetto", path], check=True, capture_output=True,
                         timeout=120)
    trace = schema.Trace()
    trace.ParseFromString(run.stdout)
    tell("fields that the schema has not", sorted(set(unknown(trace))), [])
    slices, tracks = slices_of(trace)
    events = events_of(command, path)
    for what, kinds, host in (("host", HOST, True), ("device", DEVICE, False)):
        ours = Counter((e["name"], int(e["start_ns"]), int(e["end_ns"])) for e in events if e["kind"] in kinds)
        theirs = Counter()
        for name, track, start, end in slices:
            descriptor = tracks[track]
            of_queue = descriptor.name.startswith("queue ") and not descriptor.name.endswith("annotations")
            if descriptor.HasField("thread") if host else of_queue:
                theirs[name, start, end] += 1
        tell("slices of the " + what, sorted((theirs - ours).items())[:5], sorted((ours - theirs).items())[:5])
        tell("number of slices of the " + what, sum(theirs.values()), sum(ours.values()))
    queues = {tracks[track].name for _, track, _, _ in slices if tracks[track].name.startswith("queue ")}
    wanted = {"queue %s" % e["thread"] for e in events if e["kind"] in DEVICE}
    tell("tracks of queues", {name for name in queues if not name.endswith("annotations")}, wanted)


def main(command, *paths):
    passed = failed = 0
    for path in paths:
        def tell(what, theirs, ours):
            nonlocal passed, failed
            passed, failed = passed + (theirs == ours), failed + (theirs != ours)
            if theirs != ours:
                print("FAILED %s of %s: the file has %s, mtprof has %s" % (what, path, theirs, ours))
        try:
            check(command, path, tell)
        except (ValueError, KeyError, IndexError) as error:
            tell("slices", "%s: %s" % (type(error).__name__, error), "none")
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
