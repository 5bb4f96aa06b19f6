"""Call sites: from where in the user's code a call is made."""

import os
import sys
import sysconfig
import threading

_MOST_FRAMES = 16  # that are kept of a chain, the innermost
_MOST_WALKED = 96
_MOST_CHAINS = 1 << 16
_TYPED = ("<string>", "<stdin>")  # python -c, and the prompt; other such names are generated code's
_WRAPPERS = ("typing_extensions.py",)  # in site-packages: its decorators stand between the user and torch


def _folders(torch_file):
    """Those whose code makes calls for the user's: torch, this package, Python's own library."""
    places = [os.path.dirname(os.path.abspath(torch_file)), os.path.dirname(os.path.abspath(__file__))]
    library = sysconfig.get_path("stdlib")
    return tuple(place + os.sep for place in places), library + os.sep if library else None


class Sites:
    def __init__(self, recorder, torch_file):
        self._recorder = recorder
        self._inner, self._library = _folders(torch_file)
        self.forget()

    def forget(self):
        """Of a forked child: numbers of frames are those of its parent's file."""
        self._chains = {}  # frames by identity and place -> (site, the code objects, so that their ids stay theirs)

    def here(self, depth):
        """The site of the frame `depth` outside the caller's. The walk costs most of what a call's record costs: a chain
        that was seen before is known by its code and instructions, without names and lines."""
        try:
            frame = sys._getframe(depth + 1)
        except ValueError:  # none of Python's
            return self._elsewhere(None)
        return self._of(frame) or self._elsewhere(frame)

    def _elsewhere(self, frame):
        """For calls without a frame of the user's. In autograd's threads: the main thread waits for them in backward()."""
        if threading.get_ident() not in threading._active:
            main = sys._current_frames().get(threading.main_thread().ident)
            site = self._of(main) if main is not None else 0
            if site:
                return site
        chain = []
        while frame is not None and len(chain) < _MOST_FRAMES:
            chain.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return self._write(chain, chain)

    def _of(self, frame):
        key = []
        walked, left = frame, _MOST_WALKED
        while walked is not None and left:
            key += id(walked.f_code), walked.f_lasti
            walked = walked.f_back
            left -= 1
        key = tuple(key)
        known = self._chains.get(key)
        if known is not None:
            return known[0]
        chain = []
        while frame is not None and len(chain) < _MOST_WALKED:
            chain.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        site = self._write(chain)
        if len(self._chains) >= _MOST_CHAINS:
            self._chains = {}
        self._chains[key] = (site, [code for code, _ in chain])
        return site

    def of_traceback(self, trace):
        """Where an exception was raised."""
        chain = []
        while trace is not None:
            chain.append((trace.tb_frame.f_code, trace.tb_lineno))
            trace = trace.tb_next
        chain.reverse()
        return self._write(chain) or self._write(chain, chain)

    def _write(self, chain, users=None):
        """`chain`: (code, line), innermost first. 0 where no frame of it is the user's."""
        if users is None:
            users = [place for place in chain if self._is_users(place[0].co_filename)]
        site = 0
        for code, line in reversed(users[:_MOST_FRAMES]):
            site = self._recorder.frame(site, code.co_name, code.co_filename, line)
        return site

    def _is_users(self, file):
        if file.startswith(self._inner) or file.endswith(_WRAPPERS):
            return False
        if file.startswith("<"):
            return file in _TYPED
        if not os.path.isabs(file) and not os.path.exists(file):  # names that torch.fx gives to what it generates
            return False
        # The library's folder holds site-packages, which is the user's.
        inside = self._library is not None and file.startswith(self._library)
        return not inside or "-packages" + os.sep in file
