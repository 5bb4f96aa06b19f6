"""Process groups: their numbers in the capture."""

import weakref


class Groups:
    def __init__(self, recorder, c10d):
        self._recorder = recorder
        self._c10d = c10d  # the module torch.distributed.distributed_c10d
        self._references = {}  # weak: no group lives longer for being known here
        self.forget()
        self.seen = []  # backends, for whoever asks which recorders may hold something

    def forget(self):
        """Of a forked child, whose file has no groups yet."""
        self._known = {}  # id of a group -> (number, size, whether it is gloo's alone)

    def of(self, group):
        """(number, size, whether it is gloo's alone)"""
        known = self._known.get(id(group))
        return known if known is not None else self._add(group)

    def number_if_known(self, group):
        known = self._known.get(id(group))
        return known[0] if known else 0

    def default(self):
        group = self._c10d.GroupMember.WORLD
        return self.of(group)[0] if group is not None else 0

    def all(self):
        return [known[0] for known in self._known.values()]

    def drop(self, group):
        self._known.pop(id(group), None)

    def drop_all(self):
        self._known.clear()

    def _add(self, group, ranks=None, backend=None):
        world = self._c10d._world
        if ranks is None:
            by_rank = world.pg_group_ranks.get(group)
            ranks = sorted(by_rank, key=by_rank.get) if by_rank else None
        if backend is None:
            backend = self._backend_of(group)
        size = group.size()
        number = self._recorder.group(
            self._name_of(group), getattr(group, "group_desc", ""), backend, size, group.rank(), ranks
        )
        self.seen.append(backend)
        key = id(group)
        self._references[key] = weakref.ref(group, lambda _: self._known.pop(key, None))
        self._known[key] = number, size, backend == "gloo"
        return self._known[key]

    def add_made(self, group, ranks):
        """A group that has just been made, before torch itself knows its members."""
        return self._add(group, ranks)[0]

    def _name_of(self, group):
        name = self._c10d._world.pg_names.get(group)
        if name is None:
            name = getattr(group, "group_name", "")  # of a group that torch's registry does not hold
        return str(name)

    def _backend_of(self, group):
        """ "gloo", or "cpu:gloo,cuda:nccl" where devices differ"""
        entry = self._c10d._world.pg_map.get(group)
        named = str(entry[0]) if entry else ""
        config = str(self._c10d._world.pg_backend_config.get(group, ""))
        of_devices = {part.rpartition(":")[2] for part in config.split(",") if part}
        if len(of_devices) == 1:
            return of_devices.pop()
        return config or named
