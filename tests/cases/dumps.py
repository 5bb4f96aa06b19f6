"""Writes flight-recorder dumps for cases: what each rank enqueued, as PyTorch's recorder lays it out.

  job = Job(world=4, version="2.10")
  job.group("0", "default_pg", range(4))
  job.call(range(4), "0", "all_reduce", [64])            # completed
  job.call([0, 2, 3], "0", "all_gather", [64], [256], state="started")
  job.write(folder, pickled=True, without=[1])

Sizes are lists of extents, one tensor a call. `capacity` makes a ring: a rank keeps its last entries only.
"""
import json
import pathlib
import pickle

START_NS = 1_772_445_600_000_000_000  # 2026-03-02 10:00:00 UTC
DTYPES = {"f32": "Float", "bf16": "BFloat16", "f16": "Half", "i64": "Long", "u8": "Byte"}


class Rank:
    def __init__(self, capacity):
        self.entries = []
        self.capacity = capacity
        self.record_id = 0
        self.op_id = {}
        self.seq = {}  # (group, is p2p): last number
        self.status = {}

    def keep(self, entry):
        entry["record_id"] = self.record_id
        self.record_id += 1
        self.entries.append(entry)
        if self.capacity and len(self.entries) > self.capacity:
            del self.entries[0]


class Job:
    def __init__(self, world, version="2.10", capacity=None, timing=True, library="nccl", step_ns=1_000_000):
        self.version = version
        self.timing = timing
        self.library = library
        self.step_ns = step_ns
        self.now = START_NS
        self.groups = {}  # name: (description, members)
        self.ranks = [Rank(capacity[r] if isinstance(capacity, dict) else capacity) for r in range(world)]

    def group(self, name, description, members):
        self.groups[name] = (description, list(members))

    def call(self, ranks, group, op, sizes, out=None, dtype="f32", state="completed", line=10, splits=None, is_async=False):
        """One collective on each of `ranks`. splits: rank -> (input list, output list)."""
        self.now += self.step_ns
        for rank in ranks:
            members = self.groups[group][1]
            out_sizes = out if out is not None else (
                [sizes[0] * len(members), *sizes[1:]] if op == "all_gather" else sizes)
            entry = self._entry(rank, group, f"{self.library}:{op}", sizes, out_sizes, dtype, state, line, False)
            if splits:
                entry["input_split_sizes"], entry["output_split_sizes"] = splits[rank]
            self.ranks[rank].keep(entry)

    def send(self, source, target, group, sizes, dtype="f32", state="completed", line=20):
        self.now += self.step_ns
        self._p2p(source, group, f"send {source}->{target}", sizes, dtype, state, line)

    def recv(self, target, source, group, sizes, dtype="f32", state="completed", line=21):
        self.now += self.step_ns
        self._p2p(target, group, f"recv {target}<-{source}", sizes, dtype, state, line)

    def _p2p(self, rank, group, op, sizes, dtype, state, line):
        members = self.groups[group][1]
        here, there = (int(r) for r in op.split(" ")[1].replace("<-", "->").split("->"))
        arrow = "->" if op.startswith("send") else "<-"
        name = f"{self.library}:{op.split(' ')[0]} {members.index(here)}{arrow}{members.index(there)}"
        self.ranks[rank].keep(self._entry(rank, group, name, sizes, sizes, dtype, state, line, True))

    def _entry(self, rank, group, name, sizes, out_sizes, dtype, state, line, p2p):
        recorder = self.ranks[rank]
        key = (group, p2p)
        recorder.seq[key] = recorder.seq.get(key, 0) + 1
        recorder.op_id[group] = recorder.op_id.get(group, 0) + 1
        if state == "started" and not self.timing:
            state = "scheduled"
        status = recorder.status.setdefault(
            group, {"last_enqueued_collective": -1, "last_started_collective": -1, "last_completed_collective": -1})
        if not p2p:
            seq = recorder.seq[key]
            status["last_enqueued_collective"] = seq
            if self.timing and state != "scheduled":
                status["last_started_collective"] = seq
            if state == "completed":
                status["last_completed_collective"] = seq
        begun, ended = state != "scheduled" and self.timing, state == "completed"
        barrier = name.endswith(":barrier")
        return {
            "frames": [{"name": "step", "filename": "train.py", "line": line}],
            "record_id": 0,
            "pg_id": list(self.groups).index(group),
            "process_group": [group, self.groups[group][0]],
            "collective_seq_id": recorder.seq.get((group, False), 0),
            "p2p_seq_id": recorder.seq.get((group, True), 0),
            "op_id": recorder.op_id[group],
            "profiling_name": name,
            "time_created_ns": self.now,
            "input_sizes": [[1]] if barrier else [list(sizes)],
            "input_dtypes": [DTYPES[dtype]],
            "output_sizes": [[1]] if barrier else [list(out_sizes)],
            "output_dtypes": [DTYPES[dtype]],
            "state": state,
            "time_discovered_started_ns": self.now + 1000 if begun else None,
            "time_discovered_completed_ns": self.now + 500_000 if ended else None,
            "retired": ended,
            "timeout_ms": 600_000,
            "is_p2p": p2p,
        }

    def dump(self, rank):
        mine = {name: g for name, g in self.groups.items() if rank in g[1]}
        return {
            "version": self.version,
            "pg_config": {n: {"name": n, "desc": d, "ranks": json.dumps(m)} for n, (d, m) in mine.items()},
            "pg_status": {n: s for n, s in self.ranks[rank].status.items()},
            "entries": self.ranks[rank].entries,
        }

    def write(self, folder, pickled=False, without=()):
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        for rank in range(len(self.ranks)):
            if rank in without:
                continue
            if pickled:
                (folder / f"rank_{rank}").write_bytes(pickle.dumps(self.dump(rank), protocol=2))
            else:
                (folder / f"rank_{rank}.json").write_text(json.dumps(self.dump(rank)))
