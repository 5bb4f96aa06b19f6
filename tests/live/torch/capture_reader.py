"""Reads capture files (traces/capture/record.h) by struct alone, apart from ddx's own importer."""

import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORD_H = (ROOT / "traces/capture/record.h").read_text()


def enum(name):
    """{number: word} of an enum class of record.h"""
    body = re.search(r"enum class %s[^{]*\{(.*?)\};" % name, RECORD_H, re.S)[1]
    numbers, following = {}, 0
    for line in body.splitlines():
        for word, number in re.findall(r"(\w+)(?:\s*=\s*(\d+))?\s*,", line.split("//")[0] + ","):
            following = int(number) if number else following
            numbers[following] = word
            following += 1
    return numbers


KINDS, ELEMENTS, REDUCTIONS, FIELDS, EVENTS, TYPES = map(
    enum, ("CallKind", "ElementType", "Reduction", "Field", "EventCode", "RecordType")
)
TYPE = {word: number for number, word in TYPES.items()}
FIELDS.setdefault(9, "members")
FLAGS = {"async": 0x04, "no_count": 0x08, "failed": 0x10, "no_end": 0x20, "end_at_host": 0x40}


class Capture:
    """texts, frames and groups by number; calls and events in the order of their records, as dictionaries."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = self.path.read_bytes()
        assert self.data[:8] == b"ddxtrace", path
        fields = struct.unpack_from("<6I2qQ4i3q2I", self.data, 8)
        self.version, self.header_bytes, self.record_bytes, self.segment_bytes, _, self.layers = fields[:6]
        self.pid, self.parent, _, self.rank, self.world_size, self.local_rank, self.attempt = fields[6:13]
        self.finished, self.stopped = fields[15], fields[16]
        self.tables, self.ring = self._streams()
        self.texts, self.frames, self.groups = {}, {}, {}
        self.calls, self.events = [], []
        self._read_tables()
        self._read_ring()

    def _streams(self):
        streams = {1: {}, 2: {}}
        per_segment = self.segment_bytes // self.record_bytes - 1
        for at in range(self.header_bytes, len(self.data) - self.segment_bytes + 1, self.segment_bytes):
            stream, number = struct.unpack_from("<2I", self.data, at)
            if stream not in streams:
                continue
            for i in range(per_segment):
                place = at + (i + 1) * self.record_bytes
                record = number * per_segment + i
                if struct.unpack_from("<I", self.data, place)[0] == record % 0xFFFFFFFF + 1:
                    streams[stream][record] = self.data[place : place + self.record_bytes]
        return streams[1], streams[2]

    def _read_tables(self):
        for number in sorted(self.tables):
            data = self.tables[number]
            if data[4] == TYPE["text"]:
                more = struct.unpack_from("<H", data, 6)[0]
                pieces = [self.tables[number + i] for i in range(more + 1)]
                self.texts[number + 1] = b"".join(p[8 : 8 + p[5]] for p in pieces).decode()
            elif data[4] == TYPE["frame"]:
                self.frames[number + 1] = struct.unpack_from("<4I", data, 8)
            elif data[4] == TYPE["group"]:
                self.groups[number + 1] = self._group(number, data)

    def _group(self, number, data):
        name, description, backend, parent, size, position = struct.unpack_from("<4I2i", data, 8)
        first, step = struct.unpack_from("<2i", data, 52)
        ranks = None
        if first >= 0 and step != 0:
            ranks = [first + i * step for i in range(size)]
        elif first >= 0:
            ranks = []
            while len(ranks) < size:
                number += 1
                piece = self.tables[number]
                ranks += struct.unpack_from("<14i", piece, 8)[: piece[5]]
        texts = [self.text(t) for t in (name, description, backend)]
        return {"name": texts[0], "description": texts[1], "backend": texts[2], "size": size, "position": position, "ranks": ranks}

    def text(self, number):
        return self.texts[number] if number else ""

    def site(self, number):
        """[(function, file, line)], innermost first"""
        chain = []
        while number:
            number, function, file, line = self.frames[number]
            chain.append((self.text(function), self.text(file), line))
        return chain

    def _read_ring(self):
        for number in sorted(self.ring):
            data = self.ring[number]
            if data[4] == TYPE["call"]:
                self.calls.append(self._call(number, data))
            elif data[4] == TYPE["event"]:
                code, layer = data[5], data[6]
                group, text, site, _, time, value, call = struct.unpack_from("<4I2qQ", data, 8)
                self.events.append(
                    {"code": EVENTS[code], "layer": layer, "group": group, "text": self.text(text), "site": self.site(site),
                     "time": time, "value": value, "call": call}
                )  # fmt: skip

    def _call(self, number, data):
        kind, element, reduction = data[5:8]
        group, seq, peer, site, count, issue, start, end = struct.unpack_from("<2IiI Q3q".replace(" ", ""), data, 8)
        stream, batch, flags, more, outer = struct.unpack_from("<2H2BH", data, 56)
        fields = {}
        for i in range(more):
            piece = self.ring[number + 1 + i]
            fields.setdefault(FIELDS[piece[5]], []).extend(struct.unpack_from("<7q", piece, 8)[: piece[6]])
        return {
            "number": number, "kind": KINDS[kind], "element": ELEMENTS[element], "reduction": REDUCTIONS[reduction],
            "group": self.groups.get(group), "group_number": group, "seq": seq, "peer": peer, "site": self.site(site), "count": count,
            "issue": issue, "start": start, "end": end, "stream": stream, "batch": batch, "layer": flags & 3,
            "flags": {word for word, bit in FLAGS.items() if flags & bit}, "more": fields, "outer": outer,
        }  # fmt: skip


def captures(folder):
    """Of a job's folder, by rank; a rank may have several (forked children)."""
    found = [Capture(path) for path in sorted(pathlib.Path(folder).glob("*.ddx"))]
    return sorted(found, key=lambda capture: (capture.rank, capture.pid))
