"""The PyTorch layer of `ddx wrap`: records what torch.distributed is asked to do (docs/torch-capture.md).

With this folder's parent on PYTHONPATH, torch calls autoload() at the end of `import torch` (entry point group
torch.backends). It acts only where wrap's environment says so: DDX_TRACE_LIB, the path of libddx_trace.so, and
DDX_TRACE_DIR, the folder of captures. Whatever goes wrong in here, the program runs as it would without.
"""

import os


def autoload():
    """Never raises: an exception here would be one of `import torch`."""
    if not os.environ.get("DDX_TRACE_LIB") or not os.environ.get("DDX_TRACE_DIR"):
        return
    try:
        from . import hooks

        hooks.install()
    except BaseException:  # a KeyboardInterrupt in here is lost; a broken import would be worse
        pass
