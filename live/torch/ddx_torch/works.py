"""When calls are over, for those whose Work lives on the host.

The host's wait tells for most; for the others one thread asks Work.is_completed. Nothing of Python's ever runs in a
backend's thread: a callback on a future does so while the interpreter is taken down, and ends the process by a signal
(docs/torch-capture.md)."""

import _thread
import sys
import time

from .evidence import at_end

_SHORT_S = 0.002  # between two looks at calls whose end the host will not tell
_LONG_S = 0.02
_GRACE_S = 5.0  # by then whoever asked for a call holds its Work, or nobody ever will
_MOST = 4096  # Works that are kept: they keep tensors
_OURS = 2  # references to a Work that only the table below holds, as sys.getrefcount counts


class _Entry:
    __slots__ = ("work", "call", "group", "hidden", "born", "site", "can_ask")

    def __init__(self, work, call, group, hidden, site, can_ask):
        self.work = work
        self.call = call
        self.group = group
        self.hidden = hidden
        self.site = site
        self.can_ask = can_ask
        self.born = time.monotonic()


class Works:
    def __init__(self, recorder):
        self._recorder = recorder
        self.forget()

    def forget(self):
        """Of a forked child: it has none of its parent's threads."""
        self._open = {}  # id of a Work -> _Entry, which holds it, so that the id stays its own
        self._running = self._asleep = self._stopping = False
        self._bell = _thread.allocate_lock()
        self._bell.acquire()
        self._gone = _thread.allocate_lock()

    def add(self, work, call, group, is_async, site, can_ask):
        """`work`: the same object that the caller will be given. `can_ask`: its backend answers at once when it is asked
        whether it is over (gloo's: MPI's waits for what runs before)."""
        if self._stopping:
            self._recorder.no_end(call)
            return
        if len(self._open) > _MOST:
            self._bound()
        self._open[id(work)] = _Entry(work, call, group, is_async and can_ask, site, can_ask)
        if not self._running:
            self._start()
        elif self._asleep:
            self._wake()

    def patch_wait(self, work_type):
        real, waited, failed, works = work_type.wait, self._recorder.waited, self._failed, self

        def wait(self, *args, **kwargs):
            entry = works._open.get(id(self))
            if entry is None:
                return real(self, *args, **kwargs)
            try:
                result = real(self, *args, **kwargs)
            except BaseException as error:
                if works._open.pop(id(self), None) is not None:
                    failed(entry, error)
                raise
            if works._open.pop(id(self), None) is not None:
                waited(entry.call)
            return result

        wait.__doc__ = real.__doc__
        wait._torchdynamo_disable = True  # a compiler is not to look inside
        work_type.wait = wait

    def begin(self):
        """The program has begun to use torch.distributed."""
        at_end(self.stop)

    def stop(self):
        """Before the interpreter is taken down: no thread of ours is inside torch then."""
        if self._stopping:
            return
        self._stopping = True
        if self._running:
            self._wake()
            self._gone.acquire(True, 2)
        self._sweep()
        for key, entry in list(self._open.items()):
            if not self._can_complete(entry):
                self._let_go(key)

    def _wake(self):
        self._asleep = False
        try:
            self._bell.release()
        except RuntimeError:  # another thread was first
            pass

    def _start(self):
        self._running = True
        self._gone.acquire()
        # Not threading's: who counts or joins the threads of the program finds only its own.
        _thread.start_new_thread(self._run, ())

    def _run(self):
        try:
            interval = _SHORT_S
            idle = 0
            while not self._stopping:
                time.sleep(interval)
                hidden, changed = self._sweep()
                interval = _SHORT_S if hidden and changed else min(interval * 1.5, _LONG_S)
                idle = 0 if self._open else idle + 1
                if idle > 50 and not self._stopping:
                    self._sleep()
                    idle = 0
        except BaseException:  # from now on only the host's waits tell
            self._asleep = False
        finally:
            self._gone.release()

    def _sleep(self):
        self._asleep = True
        if self._open:  # added before it could see that
            self._asleep = False
            return
        self._bell.acquire()

    def _sweep(self):
        """(whether calls are open whose end only this tells, whether any ended)"""
        now = time.monotonic()
        hidden = changed = False
        for key, entry in list(self._open.items()):
            # Who waits at once tells more exactly.
            if not entry.hidden and now - entry.born < _LONG_S:
                continue
            if entry.can_ask and entry.work.is_completed():
                if self._open.pop(key, None) is not None:
                    changed = True
                    self._completed(entry)
            elif now - entry.born > _GRACE_S and sys.getrefcount(entry.work) <= _OURS and not self._can_complete(entry):
                self._let_go(key)
            else:
                hidden = hidden or entry.hidden
        self._bound()
        return hidden, changed

    def _bound(self):
        while len(self._open) > _MOST:
            self._let_go(next(iter(self._open)))

    def _let_go(self, key):
        entry = self._open.pop(key, None)
        if entry is not None:
            self._recorder.no_end(entry.call)

    @staticmethod
    def _can_complete(entry):
        """gloo's sends, receives and some more say they are open until somebody waits; they have no future either."""
        if not entry.can_ask:
            return False
        try:
            return entry.work.get_future() is not None
        except Exception:
            return False

    def _completed(self, entry):
        # Not Work.is_success: it prints a warning.
        try:
            entry.work.get_future().value()
        except Exception as error:
            if self._can_complete(entry):
                return self._failed(entry, error)
        self._recorder.waited(entry.call)

    def _failed(self, entry, error):
        try:
            words = "%s: %s" % (type(error).__name__, error)
            self._recorder.event("async_error", entry.group, words[:2000], entry.site)
        except Exception:  # of words that cannot be had; the error itself is the job's to see
            pass
