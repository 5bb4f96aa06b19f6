"""libddx_trace.so, by ctypes (live/capture/ddx_trace.h)."""

import ctypes
import struct

from .numbers import EVENTS, FIELDS, LAYER_TORCH

ABI = 1

# DdxCallInfo with its padding, in one call that makes bytes: half the cost of a ctypes structure.
_CALL = struct.Struct("@IBBBBBIiIQQHPN")
_CALL_SIZE = _CALL.size
_VALUES = struct.Struct("@BNP")
_NO_MORE = (0, 0, None)
_MOST_KEPT = 4096


class _GroupInfo(ctypes.Structure):
    _fields_ = [
        ("size_of", ctypes.c_uint32),
        ("layer", ctypes.c_uint8),
        ("name", ctypes.c_uint32),
        ("description", ctypes.c_uint32),
        ("backend", ctypes.c_uint32),
        ("parent", ctypes.c_uint32),
        ("outer", ctypes.c_uint32),
        ("size", ctypes.c_int32),
        ("position", ctypes.c_int32),
        ("hash", ctypes.c_uint64),
        ("color", ctypes.c_int32),
        ("key", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ranks", ctypes.POINTER(ctypes.c_int32)),
        ("rank_count", ctypes.c_size_t),
    ]


class Recorder:
    """Raises OSError where the library is missing or another one. Its functions neither block nor call Python, so that
    they are called without letting go of the GIL (PyDLL): that would cost more than they do."""

    def __init__(self, path):
        library = ctypes.PyDLL(path)
        if library.ddx_trace_abi() != ABI:
            raise OSError("%s has another interface than %d" % (path, ABI))
        u32, i64, u64 = ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
        self._text = self._function(library.ddx_text, u32, ctypes.c_char_p, ctypes.c_size_t)
        self._frame = self._function(library.ddx_frame, u32, u32, u32, u32, u32, u64)
        self._group = self._function(library.ddx_group, u32, ctypes.POINTER(_GroupInfo))
        self._event = self._function(library.ddx_event, None, ctypes.c_uint8, ctypes.c_uint8, u32, u32, u32, i64)
        self._begin = self._function(library.ddx_begin, u64, ctypes.c_char_p)
        self.identify = self._function(library.ddx_identify, None, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
        self.recording = self._function(library.ddx_recording, ctypes.c_int)
        self.returned = self._function(library.ddx_returned, None, u64, i64)
        self.ended = self._function(library.ddx_ended, None, u64, i64)
        self.waited = self._function(library.ddx_waited, None, u64)
        self.no_end = self._function(library.ddx_no_end, None, u64)
        self.batch = self._function(library.ddx_batch, ctypes.c_uint16)
        self.forget()

    @staticmethod
    def _function(function, result, *arguments):
        function.restype, function.argtypes = result, arguments
        return function

    def forget(self):
        """Of a forked child: numbers of texts and frames are those of its parent's file."""
        self._kept = {}

    def text(self, words):
        if not words:
            return 0
        data = words.encode("utf-8", "replace")
        return self._text(data, len(data))

    def frame(self, caller, function, file, line):
        return self._frame(caller, self.text(function), self.text(file), line or 0, 0)

    def group(self, name, description, backend, size, position, ranks):
        """`ranks`: global ranks by position, or None."""
        info = _GroupInfo(
            size_of=ctypes.sizeof(_GroupInfo),
            layer=LAYER_TORCH,
            name=self.text(name),
            description=self.text(description),
            backend=self.text(backend),
            size=size,
            position=position,
            device=-1,
        )
        if ranks:
            info.ranks = (ctypes.c_int32 * len(ranks))(*ranks)
            info.rank_count = len(ranks)
        return self._group(ctypes.byref(info))

    def event(self, name, group=0, text="", site=0, value=0):
        self._event(EVENTS[name], LAYER_TORCH, group, self.text(text), site, value)

    def begin(self, kind, element, reduction, flags, group, peer, site, count, batch, more):
        """`more`: of more(), or None. What is begun must be returned(), whatever number this gives."""
        values, fields, _ = more or _NO_MORE
        return self._begin(
            _CALL.pack(
                _CALL_SIZE, LAYER_TORCH, kind, element, reduction, flags, group, peer, site, count, 0, batch, values, fields
            )
        )

    def more(self, fields):
        """(address, number of fields, what must live as long) of a tuple of (field's name, tuple of values). Jobs repeat
        themselves, so that what was made once is kept."""
        found = self._kept.get(fields)
        if found is not None:
            return found
        arrays = [(ctypes.c_int64 * len(values))(*values) for _, values in fields]
        parts = [
            _VALUES.pack(FIELDS[name], len(values), ctypes.addressof(array)) for (name, values), array in zip(fields, arrays)
        ]
        block = ctypes.create_string_buffer(b"".join(parts), len(parts) * _VALUES.size)
        made = (ctypes.addressof(block), len(parts), (arrays, block))
        if len(self._kept) >= _MOST_KEPT:
            self._kept = {}
        self._kept[fields] = made
        return made
