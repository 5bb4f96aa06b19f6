"""Puts everything in place, once, inside `import torch`."""

import functools
import inspect
import os
import sys

from .calls import NOT_CALLS, Calls, Shape
from .evidence import Evidence
from .groups import Groups
from .numbers import KINDS, NO_END
from .recorder import Recorder
from .sites import Sites
from .works import Works

_installed = None  # of this process: the kernels are gone when it is


def install():
    global _installed
    if _installed is None:
        _installed = Hooks()


def guarded(function):
    """Ours may fail; what it stands in for may not."""

    @functools.wraps(function)
    def call(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception:
            return None

    return call


class Hooks:
    def __init__(self):
        import torch
        import torch.distributed as dist

        if not dist.is_available():
            return
        self.torch, self.dist, self.c10d = torch, dist, sys.modules["torch.distributed.distributed_c10d"]
        self.recorder = Recorder(os.environ["DDX_TRACE_LIB"])
        self.sites = Sites(self.recorder, torch.__file__)
        self.groups = Groups(self.recorder, self.c10d)
        self.works = Works(self.recorder)
        self.calls = Calls(torch, self.recorder, self.sites, self.groups, self.works)
        self.evidence = Evidence(torch, self.recorder, self.sites, self.groups)
        self.blind = []
        self.begun = False
        os.register_at_fork(after_in_child=guarded(self.forget))
        self.evidence.install()
        self.hook_operations()
        self.hook_waits()
        self.hook_groups()
        self.hook_batches()

    @guarded
    def forget(self):
        self.begun = False
        for part in (self.recorder, self.sites, self.groups, self.works, self.evidence):
            part.forget()

    @guarded
    def begin(self):
        """At the first group: before it nothing is written, so that programs that only import torch leave no file."""
        if self.begun:
            return
        self.begun = True
        self.recorder.event("layer_loaded", 0, "torch " + str(self.torch.__version__))
        for words in self.blind:
            self.recorder.event("layer_blind", 0, "torch: " + words)
        self.evidence.begin()
        self.works.begin()

    def hook_operations(self):
        torch = self.torch
        self.library = torch.library.Library("c10d", "IMPL")
        for full in sorted(torch._C._dispatch_get_all_op_names()):
            space, _, name = full.partition("::")
            if space != "c10d" or name in NOT_CALLS:
                continue
            try:
                plain, _, overload = name.partition(".")
                operation = getattr(getattr(torch.ops.c10d, plain), overload or "default")
                kernel = self.calls.kernel(operation, Shape(plain, operation._schema))
                self.library.impl(name, kernel, "BackendSelect", with_keyset=True)
            except Exception as error:
                self.blind.append("cannot see %s: %s" % (full, str(error)[:200]))

    def hook_waits(self):
        bindings = self.torch._C._distributed_c10d
        for kind in list(vars(bindings).values()):
            if isinstance(kind, type) and issubclass(kind, bindings.Work) and "wait" in vars(kind):
                self.works.patch_wait(kind)

    def replace(self, name, make):
        """A function of torch.distributed, under all its names. Not for functions that torch.compile knows by identity."""
        real = getattr(self.c10d, name, None)
        if real is None:
            return
        ours = functools.wraps(real)(make(real))
        setattr(self.c10d, name, ours)
        if getattr(self.dist, name, None) is real:
            setattr(self.dist, name, ours)

    def hook_groups(self):
        self.replace("init_process_group", self._around_init)
        self.replace("_new_process_group_helper", self._around_helper)
        self.replace("split_group", self._around_split)
        self.replace("destroy_process_group", lambda real: self._around_end(real, "group_destroyed"))
        self.replace("_abort_process_group", lambda real: self._around_end(real, "group_aborted"))
        if not hasattr(self.c10d, "_new_process_group_helper"):
            self.blind.append("cannot see groups being made, only used")

    def _around_init(self, real):
        def init_process_group(*arguments, **named):
            self.begin()
            return real(*arguments, **named)

        return init_process_group

    def _around_helper(self, real):
        try:
            signature = inspect.signature(real)
        except Exception:
            signature = None

        def _new_process_group_helper(*arguments, **named):
            made = self._group_begins(signature, arguments, named, sys._getframe(1))
            try:
                result = real(*arguments, **named)
            except BaseException:
                self._group_ends(made, None)
                raise
            self._group_ends(made, result)
            return result

        return _new_process_group_helper

    @guarded
    def _group_begins(self, signature, arguments, named, caller):
        """(call or None, global ranks)"""
        self.begin()
        told = signature.bind(*arguments, **named).arguments
        ranks = list(told["global_ranks_in_group"])
        if not ranks:  # the default group: its numbers are the job's
            size, rank = told["group_size"], told["group_rank"]
            self.recorder.identify(rank, size, -1)
            self.evidence.set_rank(rank)
            return None, list(range(size))
        # With local synchronisation only its members make it: a call of theirs, not one of the default group's.
        local = caller.f_locals.get("use_local_synchronization", not str(told["group_name"]).isdigit())
        default = 0 if local else self.groups.default()
        fields = (("name", (self.recorder.text(str(told["group_name"])),)), ("members", tuple(ranks)))
        call = self.recorder.begin(
            KINDS["new_group"], 0, 0, 0, default, -1, self.sites.here(3), 0, 0, self.recorder.more(fields)
        )
        return call, ranks

    @guarded
    def _group_ends(self, made, result):
        if made is None:
            return
        call, ranks = made
        if call is not None:
            self.recorder.returned(call, 0 if result is not None else 1)
            if result is not None:
                self.recorder.waited(call)
        group = result[0] if isinstance(result, tuple) else None
        if isinstance(group, self.c10d.ProcessGroup):
            self.groups.add_made(group, ranks)

    def _around_split(self, real):
        def split_group(*arguments, **named):
            parent = arguments[0] if arguments else named.get("parent_pg")
            call = self._split_begins(parent)
            status = 1
            try:
                result = real(*arguments, **named)
                status = 0
            finally:
                if call is not None:
                    self.recorder.returned(call, status)
            return result

        return split_group

    @guarded
    def _split_begins(self, parent):
        number = self.groups.of(parent)[0] if parent is not None else self.groups.default()
        return self.recorder.begin(KINDS["split_group"], 0, 0, NO_END, number, -1, self.sites.here(3), 0, 0, None)

    def _around_end(self, real, event):
        def end(group=None, *arguments, **named):
            numbers = self._numbers_that_end(group)
            result = real(group, *arguments, **named)
            self._ended(event, group, numbers)
            return result

        return end

    @guarded
    def _numbers_that_end(self, group):
        if group is None or group is self.c10d.GroupMember.WORLD:
            return self.groups.all()
        number = self.groups.number_if_known(group)
        return [number] if number else []

    @guarded
    def _ended(self, event, group, numbers):
        for number in numbers or []:
            self.recorder.event(event, number)
        if self.c10d.GroupMember.WORLD is None:
            self.groups.drop_all()
        else:
            self.groups.drop(group)

    def hook_batches(self):
        """Calls that are posted together: between these two, and in batch_isend_irecv, which begins by checking its list
        (torch.compile knows it by identity, so that it is left alone)."""
        batches, recorder = self.calls.batches, self.recorder
        group_type = self.torch._C._distributed_c10d.ProcessGroup
        start, end = getattr(group_type, "_start_coalescing", None), getattr(group_type, "_end_coalescing", None)
        if start is None or end is None:
            self.blind.append("cannot see which calls are coalesced")
        else:

            def _start_coalescing(self, *arguments, **named):
                batches.open = recorder.batch()
                return start(self, *arguments, **named)

            def _end_coalescing(self, *arguments, **named):
                batches.open = 0
                return end(self, *arguments, **named)

            group_type._start_coalescing, group_type._end_coalescing = _start_coalescing, _end_coalescing

        def around(real):
            def _check_p2p_op_list(*arguments, **named):
                batches.posted = recorder.batch()
                return real(*arguments, **named)

            return _check_p2p_op_list

        self.replace("_check_p2p_op_list", around)
