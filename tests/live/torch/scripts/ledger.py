"""What every job here has: a process group, and ledgers of its own that the capture is held against.

In $DDX_LEDGER/rank_N.json: "dispatch", what torch's dispatcher was asked for inside `with ledger()`; "hooks", what the
groups' own hooks said, or null where this torch has none; "recorder", the entries of its flight recorder, or null.
"""

import json
import os

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

_dispatch = []
_hooks = None


def start():
    """(rank, number of ranks)"""
    dist.init_process_group("gloo")
    watch(dist.group.WORLD)
    return dist.get_rank(), dist.get_world_size()


def watch(group):
    """Where this torch has hooks of groups."""
    global _hooks
    if not hasattr(group, "register_pre_hook"):
        return
    _hooks = _hooks or []
    name = group.group_name

    def before(told):
        elements = sum(t.numel() for t in told.input_tensors)
        _hooks.append([name, str(told.name).rpartition(".")[2].lower(), elements, told.root])

    group.register_pre_hook(7, before)


class ledger(TorchDispatchMode):
    """Notes operations of c10d with their arguments by name."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            schema = func._schema.arguments
            told = {a.name: a.default_value for a in schema if a.has_default_value()}
            told.update(zip((a.name for a in schema), args))
            told.update(kwargs or {})
            _dispatch.append([func._schema.name.partition("::")[2], {k: _plain(v) for k, v in told.items()}])
        return func(*args, **(kwargs or {}))


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, torch.Tensor):
        return {"dtype": str(value.dtype).partition(".")[2], "shape": list(value.shape)}
    if isinstance(value, torch.ScriptObject):
        kind = value._type().qualified_name().rpartition(".")[2]
        if kind == "ProcessGroup":
            return torch._C._distributed_c10d.ProcessGroup.unbox(value).group_name
        return {"op": int(value.op())} if hasattr(value, "op") else None
    return value


def finish():
    dist.barrier()
    bindings = torch._C._distributed_c10d
    entries = None
    if hasattr(bindings, "_dump_fr_trace_json"):
        entries = json.loads(bindings._dump_fr_trace_json())["entries"]
    with open(os.path.join(os.environ["DDX_LEDGER"], "rank_%d.json" % dist.get_rank()), "w") as file:
        json.dump({"dispatch": _dispatch, "hooks": _hooks, "recorder": entries}, file)
    dist.destroy_process_group()
