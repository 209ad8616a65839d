"""The peer Cyclone DDS (Python package `cyclonedds`) for the matrix of types. Usage: ../typed.h; before the
endpoints stands `final` or `appendable`.
"""

import signal
import sys
import time
from dataclasses import dataclass

from cyclonedds.core import InstanceState, Listener
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, annotations
from cyclonedds.idl.types import float64, sequence, uint8, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

SAMPLES, RUN_S, LOOK_S = 3, 60, 0.005
# Of dds.h: no policy of the standard has this number there.
DATA_REPRESENTATION = 25


def types(extensibility):
    """Reading.idl with this extensibility."""

    @dataclass
    @extensibility
    class Part(IdlStruct, typename="matrix.Part"):
        number: uint8
        annotations.key("number")
        serial: uint64
        label: str
        values: sequence[float64]

    @dataclass
    @extensibility
    class Reading(IdlStruct, typename="matrix.Reading"):
        name: str
        annotations.key("name")
        part: Part
        annotations.key("part")
        flag: uint8
        value: float64
        stamp: uint64
        parts: sequence[Part]
        notes: sequence[str]
        counts: sequence[uint64]

    return Part, Reading


def text(reading):
    """As print_sample of the other programs."""

    def part(of):
        return f"{of.number},{of.serial},{of.label}," + "+".join(f"{value:g}" for value in of.values)

    return "/".join([
        reading.name,
        part(reading.part),
        str(reading.flag),
        f"{reading.value:g}",
        str(reading.stamp),
        ";".join(part(one) for one in reading.parts),
        ",".join(reading.notes),
        "+".join(str(count) for count in reading.counts),
    ])


class Endpoint(Listener):
    def __init__(self, description, participant, part, reading):
        super().__init__()
        kind, self.topic, takes = description.split(":")
        self.part, self.reading = part, reading
        self.said = set()
        self.entity = None
        qos = Qos(
            Policy.DataRepresentation(
                use_cdrv0_representation="1" in takes, use_xcdrv2_representation="2" in takes
            ),
            Policy.Reliability.Reliable(duration(seconds=1)),
            Policy.Durability.TransientLocal,
            Policy.History.KeepAll,
            Policy.DurabilityService(duration(seconds=0), Policy.History.KeepAll, -1, -1, -1),
        )
        self.is_writer = kind == "w"
        self.is_matched = False
        try:
            topic = Topic(participant, self.topic, reading, qos=qos)
            kind = DataWriter if self.is_writer else DataReader
            self.entity = kind(participant, topic, qos=qos, listener=self)
        except Exception as error:
            self.say("impossible " + str(error).splitlines()[0])

    def say(self, line):
        if line not in self.said:
            print(self.topic, line, flush=True)
        self.said.add(line)

    def say_incompatible(self, status):
        is_representation = status.last_policy_id == DATA_REPRESENTATION
        self.say("incompatible " + ("DATA_REPRESENTATION" if is_representation else "other"))

    def on_offered_incompatible_qos(self, writer, status):
        self.say_incompatible(status)

    def on_requested_incompatible_qos(self, reader, status):
        self.say_incompatible(status)

    def on_publication_matched(self, writer, status):
        self.is_matched = True

    def on_subscription_matched(self, reader, status):
        self.say("matched")

    def on_sample_lost(self, reader, status):
        self.say("lost")

    def on_sample_rejected(self, reader, status):
        self.say("rejected")

    def look(self):
        if self.is_writer:
            if self.is_matched and "matched" not in self.said:
                self.say("matched")
                self.write_all()
            return
        for sample in self.entity.take(16):
            info = sample.sample_info
            if info.valid_data:
                print(self.topic, "sample", text(sample), flush=True)
            if info.instance_state == InstanceState.NotAliveDisposed:
                self.say("disposed")

    def write_all(self):
        try:
            part = self.part
            for number in range(SAMPLES):
                reading = self.reading(
                    name="left",
                    part=part(3, 0x0102030405060708, "axle", [0.5, -2.25]),
                    flag=number,
                    value=0.125 + number,
                    stamp=0xFFFFFFFF00000000 + number,
                    parts=[part(1, 11, "a", []), part(2, 22, "bcd", [1.5])],
                    notes=["", "north"],
                    counts=[1, 1 << 63],
                )
                self.entity.write(reading)
            self.entity.dispose(reading)
            self.say("written")
        except Exception as error:
            self.say("impossible " + str(error).splitlines()[0])


def main():
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    part, reading = types(getattr(annotations, sys.argv[1]))
    participant = DomainParticipant(0)
    endpoints = [Endpoint(description, participant, part, reading) for description in sys.argv[2:]]
    end = time.monotonic() + RUN_S
    while not stopped and time.monotonic() < end:
        for endpoint in endpoints:
            if endpoint.entity is not None:
                endpoint.look()
        time.sleep(LOOK_S)


main()
