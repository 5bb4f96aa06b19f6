"""The kernels: every c10d operation passes through one of these on its way to its backend.

They stand at the dispatch key BackendSelect, which all calls reach, from Python, from DDP's reducer and from compiled
graphs alike, before a backend is chosen."""

import sys
import threading

from .numbers import ASYNC, ELEMENTS, KINDS, NO_END, REDUCTIONS

# What an operation of c10d is. Those that a later torch adds are recorded by their name alone.
OPERATIONS = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "gather_": "gather",
    "gather_into_tensor_": "gather",
    "scatter_": "scatter",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "barrier": "barrier",
    "monitored_barrier_": "barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
}
NOT_CALLS = ("check_for_nan",)

_GROWS = (KINDS["all_gather"], KINDS["gather"])
_SHRINKS = (KINDS["reduce_scatter"], KINDS["scatter"])
_ROOTED = tuple(KINDS[kind] for kind in ("broadcast", "reduce", "gather", "scatter"))
_TRANSFERS = (KINDS["send"], KINDS["recv"])


class Shape:
    """Where the arguments of an operation stand, by their types: names and defaults differ between releases."""

    def __init__(self, name, schema):
        self.name = name
        self.kind = KINDS[OPERATIONS.get(name, "unknown")]
        self.names = [argument.name for argument in schema.arguments]
        self.defaults = [a.default_value if a.has_default_value() else None for a in schema.arguments]
        types = [str(argument.type) for argument in schema.arguments]
        tensors = [i for i, t in enumerate(types) if "Tensor" in t and "Optional" not in t and "?" not in t]
        self.group = next(i for i, t in enumerate(types) if "ProcessGroup" in t)
        # Of two, what comes out stands first.
        self.output, self.input = tensors[0], tensors[-1]
        self.reduction = next((i for i, t in enumerate(types) if "ReduceOp" in t), None)
        numbers = [i for i, t in enumerate(types) if t == "int" and schema.arguments[i].name != "timeout"]
        lists = [i for i, t in enumerate(types) if t == "List[int]"]
        self.peer = self.tag = self.splits = self.is_async = None
        if self.kind in _ROOTED or (self.kind in _TRANSFERS and len(numbers) > 1):
            self.peer = numbers[0]
        if self.kind in _TRANSFERS:
            self.tag = numbers[-1]
        if name == "alltoall_base_":
            self.splits = lists[0], lists[1]
        self.is_async = next((i for i, a in enumerate(schema.arguments) if a.name in ("async_op", "asyncOp")), None)
        self.blocks = name == "monitored_barrier_"
        # Those behind have defaults, and are not asked for or known by them.
        places = (self.output, self.input, self.group, self.reduction, self.peer, self.tag, *(self.splits or ()))
        self.needed = 1 + max(place for place in places if place is not None)


class Calls:
    def __init__(self, torch, recorder, sites, groups, works):
        self._torch, self._recorder, self._sites, self._groups, self._works = torch, recorder, sites, groups, works
        bindings = torch._C._distributed_c10d
        self._group_of, self._work_of = bindings.ProcessGroup.unbox, bindings.Work.unbox
        self._modes = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
        self.batches = threading.local()  # `open`: number of the coalesced batch; `posted`: of batch_isend_irecv
        self.trouble = None
        self._elements = {getattr(torch, name): number for name, number in ELEMENTS.items() if hasattr(torch, name)}
        names = bindings.ReduceOp.RedOpType
        self._reductions = {int(getattr(names, name)): number for name, number in REDUCTIONS.items() if hasattr(names, name)}
        self._told_blind = set()
        self._real_types = {torch.Tensor: True}

    def kernel(self, operation, shape):
        torch, record, works = self._torch, self._record, self._works
        handle = getattr(operation, "_handle", None)
        redispatch = getattr(handle, "redispatch_boxed", None) or operation.redispatch
        following = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        returned = self._recorder.returned

        def call_recorded(keyset, *arguments, **named):
            began = None
            if self.trouble is None:
                try:
                    began = record(shape, arguments, named)
                except BaseException as error:
                    self.stop(error)
            if began is None:
                return redispatch(keyset & following, *arguments, **named)
            try:
                # Lets go of the GIL: a backend is never entered with it, its threads may need it to let go of a tensor.
                result = redispatch(keyset & following, *arguments, **named)
            except BaseException:
                returned(began[0], 1)
                raise
            returned(began[0], 0)
            try:
                self._made(shape, began, result)
            except BaseException as error:
                self.stop(error)
            return result

        return call_recorded

    def stop(self, error):
        """On trouble of ours: nothing more is recorded, and the capture says why."""
        if self.trouble is None:
            self.trouble = "%s: %s" % (type(error).__name__, error)
            try:
                self._recorder.event("layer_blind", 0, "torch: stopped recording calls: " + self.trouble[:1000])
            except BaseException:
                pass

    def _record(self, shape, arguments, named):
        """None: not to be recorded; else what _made() needs."""
        if named or len(arguments) < shape.needed:
            arguments = self._filled(shape, arguments, named)
        # The user's modes are not to see what is asked here.
        if self._modes() > 0:
            with self._torch._C.DisableTorchFunction():
                return self._begin(shape, arguments)
        return self._begin(shape, arguments)

    @staticmethod
    def _filled(shape, arguments, named):
        """Arguments at the end that have their default value do not come."""
        filled = list(arguments) + shape.defaults[len(arguments) :]
        for name, value in named.items():
            filled[shape.names.index(name)] = value
        return filled

    def _begin(self, shape, arguments):
        kind = shape.kind
        put_in = arguments[shape.input]
        come_out = arguments[shape.output]
        first = _first(put_in)
        first = first if first is not None else _first(come_out)
        if first is not None and not self._is_real(first):
            return None
        group = self._group_of(arguments[shape.group])
        number, size, can_ask = self._groups.of(group)

        on_host = first is not None and first.device.type == "cpu"
        batch = getattr(self.batches, "open", 0)
        if kind in _TRANSFERS:
            is_async, batch = self._of_transfer(batch)
        else:
            is_async = self._is_async(shape, arguments)
        element = count = 0
        if kind != 9:
            element = self._elements.get(first.dtype, 0) if first is not None else 0
            count = _count(put_in)
        reduction = 0
        if shape.reduction is not None:
            reduction = self._reduction(arguments[shape.reduction])
        peer = arguments[shape.peer] if shape.peer is not None else -1
        more = None
        if kind != 1:
            more = self._more(shape, arguments, count, size)
        site = self._sites.here(3)
        flags = (ASYNC if is_async else 0) | (0 if on_host else NO_END)
        call = self._recorder.begin(kind, element, reduction, flags, number, peer, site, count, batch, more)
        return call, number, on_host, is_async, site, can_ask

    def _made(self, shape, began, result):
        call, group, on_host, is_async, site, can_ask = began
        if not on_host:
            return
        work = result[-1] if type(result) is tuple else result
        if work is None:
            self._recorder.waited(call)
            return
        self._works.add(self._work_of(work), call, group, is_async, site, can_ask)

    def _is_real(self, tensor):
        """Compilers call with tensors that stand for others."""
        kind = type(tensor)
        real = self._real_types.get(kind)
        if real is None:
            fake = sys.modules.get("torch._subclasses.fake_tensor")
            real = fake is None or not issubclass(kind, fake.FakeTensor)
            self._real_types[kind] = real
        return real and not tensor.is_meta

    @staticmethod
    def _is_async(shape, arguments):
        if shape.blocks:
            return False
        if shape.is_async is None:
            return _local_of_caller("async_op") is not False
        return arguments[shape.is_async] if shape.is_async < len(arguments) else True

    def _reduction(self, boxed):
        op = getattr(boxed, "op", None)
        if op is not None:
            return self._reductions.get(int(op()), 0)
        return self._reduction_of_caller()

    def _reduction_of_caller(self):
        op = _local_of_caller("op")
        if op is not None:
            return self._reductions.get(int(getattr(op, "op", op)), 0)
        if "reduction" not in self._told_blind:
            self._told_blind.add("reduction")
            self._recorder.event("layer_blind", 0, "torch: this release does not tell the reductions of calls made in C++")
        return 0

    def _of_transfer(self, batch):
        """(asynchronous, batch) of a send or receive, which its arguments do not tell: the functions that made it do."""
        is_async = True
        for frame in _frames_of_c10d():
            name = frame.f_code.co_name
            if name in ("send", "recv"):
                is_async = False
            elif name == "batch_isend_irecv" and not batch:
                batch = getattr(self.batches, "posted", 0)
        return is_async, batch

    def _more(self, shape, arguments, count, size):
        fields = ()
        kind = shape.kind
        if kind in _TRANSFERS:
            if arguments[shape.tag]:
                fields = (("tag", (arguments[shape.tag],)),)
        elif kind == 0:
            fields = (("name", (self._recorder.text("c10d::" + shape.name),)),)
        elif kind != 9:
            come_out = arguments[shape.output]
            if kind == 8:
                fields = self._splits(shape, arguments)
            if shape.output != shape.input:
                out = _count(come_out)
                if out != _ruled_count_out(kind, count, size):
                    fields += (("count_out", (out,)),)
                first_in, first_out = _first(arguments[shape.input]), _first(come_out)
                if first_in is not None and first_out is not None and first_in.dtype is not first_out.dtype:
                    fields += (("element_out", (self._elements.get(first_out.dtype, 0),)),)
        return self._recorder.more(fields) if fields else None

    @staticmethod
    def _splits(shape, arguments):
        """Elements for and from each member, where it says so; the lists of alltoall_base_ are of rows."""
        if shape.splits is None:
            sides = [(name, [t.numel() for t in arguments[at]]) for name, at in (("in", shape.input), ("out", shape.output))]
        else:
            sides = []
            for name, at, rows in (("out", shape.output, shape.splits[0]), ("in", shape.input, shape.splits[1])):
                tensor = arguments[at]
                row = tensor.numel() // tensor.shape[0] if tensor.dim() > 0 and tensor.shape[0] > 0 else 1
                sides.append((name, [count * row for count in arguments[rows]]))
        return tuple(("split_" + name, tuple(counts)) for name, counts in sides if counts)


def _frames_of_c10d():
    """The functions of torch.distributed that made this call, innermost first. The user's modes may stand between."""
    frame = sys._getframe(1)
    for _ in range(20):
        if frame is None:
            return
        if frame.f_code.co_filename.endswith("distributed_c10d.py"):
            yield frame
        frame = frame.f_back


def _local_of_caller(name):
    """What older releases do not tell in an operation's arguments is a local of the function that calls; None of C++."""
    for frame in _frames_of_c10d():
        found = frame.f_locals.get(name)
        if found is not None:
            return found
    return None


def _ruled_count_out(kind, count, size):
    """What comes out where nothing else is said."""
    if kind in _GROWS:
        return count * size
    return count // size if kind in _SHRINKS else count


def _first(tensors):
    """The first of a tensor, a list of them, or a list of lists; None."""
    while type(tensors) in (list, tuple):
        if not tensors:
            return None
        tensors = tensors[0]
    return tensors


def _count(tensors):
    if type(tensors) not in (list, tuple):
        return tensors.numel()
    count = 0
    for tensor in tensors:
        count += _count(tensor)
    return count
