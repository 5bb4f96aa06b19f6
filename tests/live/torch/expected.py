"""What captures are held against: other witnesses of the same job, and what is worked out by hand.

Each check yields what is wrong. Of a call, `brief` makes (group, kind, element, reduction, elements in, peer)."""

import collections
import math

# c10d's operations by what the capture calls them, and the names of their arguments: what goes in, what comes out.
OPERATIONS = {
    "allreduce_": ("all_reduce", "tensors", None),
    "allreduce_coalesced_": ("all_reduce", "tensors", None),
    "allgather_": ("all_gather", "input_tensors", "output_tensors"),
    "_allgather_base_": ("all_gather", "input_tensor", "output_tensor"),
    "allgather_into_tensor_coalesced_": ("all_gather", "inputs", "outputs"),
    "reduce_scatter_": ("reduce_scatter", "input_tensors", "output_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter", "input_tensor", "output_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", "inputs", "outputs"),
    "broadcast_": ("broadcast", "tensors", None),
    "reduce_": ("reduce", "tensors", None),
    "gather_": ("gather", "input_tensors", "output_tensors"),
    "scatter_": ("scatter", "input_tensors", "output_tensors"),
    "alltoall_": ("all_to_all", "input_tensors", "output_tensors"),
    "alltoall_base_": ("all_to_all", "input", "output"),
    "barrier": ("barrier", None, None),
    "monitored_barrier_": ("barrier", None, None),
    "send": ("send", "tensors", None),
    "recv_": ("recv", "tensors", None),
    "recv_any_source_": ("recv", "tensors", None),
}
PEERS = ("root_rank", "dst", "src")
ELEMENTS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "uint8": "u8",
    "bool": "boolean",
}  # fmt: skip
# torch's numbers of reductions (c10d/Types.hpp).
REDUCTIONS = ["sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premul_sum"]
RECORDER_ELEMENTS = {
    "Double": "f64", "Float": "f32", "Half": "f16", "BFloat16": "bf16", "Long": "i64", "Int": "i32", "Byte": "u8",
    "Bool": "boolean",
}  # fmt: skip
# A group's making is torch's, not c10d's.
MAKING = ("new_group", "split_group")


def made(capture):
    return [call for call in capture.calls if call["kind"] not in MAKING]


def brief(call):
    group = call["group"]["name"] if call["group"] else None
    return (group, call["kind"], call["element"], call["reduction"], call["count"], call["peer"])


def differences(what, mine, theirs):
    for i, (a, b) in enumerate(zip(mine, theirs)):
        if a != b:
            yield "call %d of %d is %s, %s says %s" % (i, len(mine), a, what, b)
            return
    if len(mine) != len(theirs):
        longer = mine if len(mine) > len(theirs) else theirs
        yield "%d calls, %s says %d; the first one more: %s" % (len(mine), what, len(theirs), longer[min(len(mine), len(theirs))])


def of_process(capture, ranks):
    """What holds in each healthy job."""
    if capture.world_size != ranks:
        yield "world size %d" % capture.world_size
    if capture.stopped or not capture.finished:
        yield "stopped %d, finished %d" % (capture.stopped, capture.finished)
    words = [(event["code"], event["text"]) for event in capture.events]
    codes = collections.Counter(code for code, _ in words)
    if not words or not words[0][1].startswith("torch ") or codes["layer_loaded"] != 1:
        yield "no layer_loaded first: %s" % words[:3]
    # Of an older torch.
    words = [w for w in words if "this release does not tell" not in w[1]]
    codes = collections.Counter(code for code, _ in words)
    for code in ("layer_blind", "exception", "async_error", "call_failed"):
        if codes[code]:
            yield "%s in a healthy job: %s" % (code, [w for w in words if w[0] == code])
    if codes["group_destroyed"] != len(capture.groups):
        yield "%d of %d groups were destroyed" % (codes["group_destroyed"], len(capture.groups))
    seqs = collections.Counter()
    for call in capture.calls:
        key = call["group_number"], call["kind"] in ("send", "recv")
        seqs[key] += 1
        if call["group_number"] and call["seq"] != seqs[key]:
            yield "call %s has number %d, not %d" % (brief(call), call["seq"], seqs[key])
        told_by_nobody = "no_end" in call["flags"] and call["kind"] == "reduce_scatter" and "async" in call["flags"]
        if (not call["end"] or call["end"] < call["issue"]) and not told_by_nobody:
            yield "%s is not over" % (brief(call),)
        if not call["site"] or not any("/scripts/" in file for _, file, _ in call["site"]):
            yield "%s was called from %s" % (brief(call), call["site"])
        if any("/torch/" in file and "-packages" in file for _, file, _ in call["site"]):
            yield "torch's own frames in %s" % (call["site"],)


def elements(tensors):
    if isinstance(tensors, dict):
        return math.prod(tensors["shape"])
    return sum(elements(t) for t in tensors or [])


def first(tensors):
    while isinstance(tensors, list):
        tensors = tensors[0] if tensors else None
    return tensors


def of_dispatch(capture, ledger):
    """The script's own ledger of the dispatcher, with every argument. It covers a run of the calls."""
    if not ledger:
        return
    theirs = [dispatched(name, told) for name, told in ledger]
    calls = made(capture)
    # The last barriers are behind it.
    yield from differences("the dispatcher", [brief(call) for call in calls[: len(theirs)]], [t[0] for t in theirs])
    for call, (_, further) in zip(calls, theirs):
        for name, value in further.items():
            got = ("async" in call["flags"]) if name == "async" else call["more"].get(name, [None] if name == "tag" else [])
            if got != value:
                yield "%s: %s is %s, the dispatcher says %s" % (brief(call), name, got, value)


def dispatched(name, told):
    kind, put_in, come_out = OPERATIONS[name]
    sample = first(told[put_in]) if put_in else None
    sample = sample or (first(told[come_out]) if come_out else None)
    op = told.get("reduce_op")
    peer = next((told[p] for p in PEERS if p in told), -1)
    count = elements(told[put_in]) if put_in else 0
    element = ELEMENTS[sample["dtype"]] if sample else "unknown"
    further = {}
    if "async_op" in told:
        further["async"] = told["async_op"]
    if told.get("tag"):
        further["tag"] = [told["tag"]]
    for side, field, lists in (("input", "split_in", "input_split_sizes"), ("output", "split_out", "output_split_sizes")):
        if told.get(lists):
            row = math.prod(told[side]["shape"][1:])
            further[field] = [rows * row for rows in told[lists]]
    return (told["process_group"], kind, element, REDUCTIONS[op["op"]] if op else "none", count, peer), further


# What the flight recorder calls the calls that it records on gloo.
RECORDED = {
    "all_reduce": "all_reduce", "reduce_scatter": "reduce_scatter", "all_gather": "all_gather", "broadcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier", "all_to_all": "all_to_all",
    "all_reduce_coalesced": "all_reduce", "_all_gather_base": "all_gather", "all_gather_into_tensor_coalesced": "all_gather",
}  # fmt: skip


def of_recorder(capture, entries):
    """torch's flight recorder: no root, reduction or peer, and on gloo neither transfers nor monitored barriers."""
    if entries is None:
        return
    theirs = []
    for entry in entries:
        name = entry["profiling_name"].partition(":")[2]
        kind = RECORDED.get(name, name)
        kinds = entry["input_dtypes"] or entry["output_dtypes"]
        count = sum(math.prod(sizes) for sizes in entry["input_sizes"])
        theirs.append((entry["process_group"][0], kind, RECORDER_ELEMENTS[kinds[0]] if kinds else "unknown", count))
    mine = []
    for call in made(capture):
        group, kind, element, _, count, _ = brief(call)
        if kind in ("send", "recv") or is_monitored(call):
            continue
        mine.append((group, kind, element, count))
        # gloo makes a reduce_scatter of an all_reduce a tensor, and those are what is recorded.
        at = end = len(mine) - 1
        while kind == "reduce_scatter" and sum(t[3] for t in theirs[at:end]) < count and end < len(theirs):
            end += 1
        parts = theirs[at:end]
        if parts and {part[:3] for part in parts} == {(group, "all_reduce", element)} and sum(p[3] for p in parts) == count:
            theirs[at:end] = [mine[at]]
    yield from differences("the flight recorder", mine[: len(theirs)], theirs)


def is_monitored(call):
    return call["kind"] == "barrier" and any("monitored" in line for line in source_lines(call))


def source_lines(call):
    for _, file, line in call["site"]:
        try:
            with open(file) as source:
                yield source.read().splitlines()[line - 1]
        except (OSError, IndexError):
            pass


def of_hooks(capture, told):
    """The groups' own hooks, of a torch that has them: (group, name, elements in, root or peer)."""
    if told is None:
        return
    watched = {group for group, _, _, _ in told}
    mine = [(c["group"]["name"], c["count"], c["peer"]) for c in made(capture) if c["group"]["name"] in watched]
    theirs = [(group, count, -1 if root is None else root) for group, _, count, root in told]
    yield from differences("the groups' hooks", mine[: len(theirs)], theirs)


# By hand.


def counts(kind, number, group="0"):
    def check(capture, ranks):
        found = sum(1 for call in capture.calls if call["kind"] == kind and call["group"] and call["group"]["name"] == group)
        if found != number:
            yield "%d calls of %s, not %d" % (found, kind, number)

    return check


def is_exactly(make):
    """make(rank, ranks): the calls of that rank."""

    def check(capture, ranks):
        yield from differences("the script", [brief(call) for call in made(capture)], make(capture.rank, ranks))

    return check


def ddp_counts(capture, ranks):
    """The gradients of all parameters are reduced once a step, however they lie in buckets; and buckets were rebuilt."""
    reduced = [call["count"] for call in made(capture) if call["kind"] == "all_reduce"]
    parameters = 6 * (64 * 64 + 64) + 2 * 64
    if sum(reduced) != 3 * parameters:
        yield "%d gradients reduced in three steps, not 3 x %d" % (sum(reduced), parameters)
    steps, so_far = [[]], 0
    for count in reduced:
        steps[-1].append(count)
        so_far += count
        if so_far % parameters == 0:
            steps.append([])
    if steps[0] == steps[1] or steps[1] != steps[2]:
        yield "buckets %s were not rebuilt after the first step" % steps


def functional(rank, ranks):
    world = lambda kind, element, reduction, count, peer=-1: ("0", kind, element, reduction, count, peer)  # noqa: E731
    t, rows = 4 * ranks, 2 * ranks * 3
    return [
        world("all_reduce", "f32", "max", t),
        world("all_gather", "f64", "none", t),
        world("reduce_scatter", "f32", "sum", t),
        world("broadcast", "i32", "none", t, 1),
        world("all_to_all", "f32", "none", rows),
        world("all_to_all", "f32", "none", rows),
        world("all_reduce", "f32", "sum", 2 * t),
        world("barrier", "unknown", "none", 0),
    ]


def p2p_fields(capture, ranks):
    """Which calls were posted together, and which returned at once: not among the arguments."""
    batches = [call["batch"] for call in made(capture)]
    pairs = [batches[0] != 0, batches[0] == batches[1], batches[2] == batches[3], batches[0] != batches[2], not any(batches[4:])]
    if not all(pairs):
        yield "batches are %s" % batches
    waiting = ["async" not in call["flags"] for call in made(capture)]
    if waiting != [False] * 5 + [True, False, True, False, True, True]:
        yield "those that wait: %s" % waiting


def every_op_fields(capture, ranks):
    by_name = {group["name"]: group for group in capture.groups.values()}
    names = ["0"] + (["1"] if capture.rank > 0 else [])
    for name in names:
        group = by_name.get(name, {})
        members = list(range(ranks)) if name == "0" else list(range(1, ranks))
        right = ("gloo", members, members.index(capture.rank), "default_pg" if name == "0" else "others")
        if (group.get("backend"), group.get("ranks"), group.get("position"), group.get("description")) != right:
            yield "group %s is %s" % (name, group)
    out = {call["kind"]: call["more"].get("count_out") for call in made(capture) if call["kind"] in ("gather", "scatter")}
    right = {"gather": None, "scatter": None} if capture.rank == 1 else {"gather": [0], "scatter": [8]}
    if out != right:
        yield "what comes out: %s, not %s" % (out, right)
    making = [call for call in capture.calls if call["kind"] == "new_group"]
    if not making or making[0]["more"].get("members") != list(range(1, ranks)) or making[0]["group"]["name"] != "0":
        yield "new_group: %s" % making
    # A group that only its members make is no call of the world's.
    if [call["group"] for call in making[1:]] != ([None] if capture.rank == 0 else []):
        yield "new_group with local synchronisation: %s" % making[1:]


def compiled_counts(capture, ranks):
    calls = [call for call in made(capture) if any(function == "step" for function, _, _ in call["site"])]
    if [brief(call) for call in calls] != [("0", "all_reduce", "f32", "sum", 4, -1)] * 6:
        yield "in the compiled function: %s" % [brief(call) for call in calls]


def fsdp2_counts(capture, ranks):
    """A step's backward scatters the gradients of each of three layers once."""
    scattered = [call["count"] for call in made(capture) if call["kind"] == "reduce_scatter"]
    if len(scattered) != 2 * 3 or any(count < 32 * 32 + 32 for count in scattered):
        yield "gradients scattered: %s" % scattered


CASES = {
    "ddp": {"ranks": 2, "checks": [ddp_counts]},
    "fsdp2": {"ranks": 2, "checks": [fsdp2_counts]},
    "tensor_parallel": {"ranks": 2, "checks": []},
    "functional": {"ranks": 3, "checks": [is_exactly(functional)]},
    "p2p": {"ranks": 3, "checks": [p2p_fields]},
    "objects": {"ranks": 3, "checks": []},
    "inference": {"ranks": 2, "checks": [counts("all_reduce", 1), counts("broadcast", 1), counts("all_gather", 1)]},
    "compiled": {"ranks": 2, "checks": [compiled_counts]},
    "every_op": {"ranks": 3, "checks": [every_op_fields]},
}
