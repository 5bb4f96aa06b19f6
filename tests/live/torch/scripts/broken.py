"""One process alone; argv[1] says what happens in it."""

import _thread
import os
import sys
import threading
import time

import torch
import torch.distributed as dist


def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def plain():
    alone()
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    print("sum", tensor.tolist())
    dist.destroy_process_group()


def trouble():
    """The hook's own code fails at the second call."""
    import ddx_torch.hooks

    alone()
    dist.all_reduce(torch.ones(1))

    def fails(*arguments):
        raise KeyError("of ours")

    ddx_torch.hooks._installed.calls._begin = fails
    tensor = torch.ones(3)
    for _ in range(3):
        dist.all_reduce(tensor)
    print("sum", tensor.tolist())


def deep():
    raise ValueError("the words of it\nand more")


def raises():
    alone()
    dist.all_reduce(torch.ones(1))
    deep()


def raises_early():
    """Before there is any group."""
    deep()


def raises_hooked():
    """The program has a hook of its own that calls no other, and says so."""
    alone()
    sys.excepthook = lambda *told: print("own hook", told[0].__name__)
    deep()


def raises_in_thread():
    alone()
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()


def arguments_of_callers():
    """As with a torch whose operations do not tell."""
    import ddx_torch.hooks

    calls = ddx_torch.hooks._installed.calls
    is_async = calls._is_async

    class Untold:
        blocks, is_async = False, None

    calls._reduction = lambda boxed: calls._reduction_of_caller()
    calls._is_async = lambda shape, arguments: is_async(Untold, arguments)
    alone()
    dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX)
    dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MIN, async_op=True).wait()
    dist.reduce(torch.ones(1), 0, dist.ReduceOp.PRODUCT)
    dist.group.WORLD.allreduce(torch.ones(1)).wait()


def fake():
    """A backend that does nothing, as one rank of many."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    group = dist.new_group([1, 3, 5])
    dist.all_reduce(torch.ones(4))
    dist.broadcast(torch.ones(5), src=5, group=group)
    dist.destroy_process_group()


def refused():
    """The backend raises at a call; the next one is made all the same."""
    alone()
    try:
        dist.all_gather([torch.empty(3)], torch.ones(4))
    except Exception:
        print("refused")
    dist.all_reduce(torch.ones(1))


def native_thread():
    """A thread without any frame of Python's makes a call, as autograd's do."""
    alone()
    done = []
    _thread.start_new_thread(dist.group.WORLD.allreduce, ([torch.ones(5)],))
    while not done:
        dist.all_reduce(torch.ones(1))  # gloo keeps the order
        done.append(1)
        time.sleep(0.5)


def forks():
    """A child of fork has a capture of its own; its parent's goes on."""
    child = os.fork()
    alone()
    dist.all_reduce(torch.ones(2 if child else 7))
    if child:
        second = os.fork()  # now with a group
        if not second:
            os._exit(0)
        os.waitpid(second, 0)
        os.waitpid(child, 0)
        dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()


def spawned(rank):
    raises()


def spawns():
    """Ranks made by torch.multiprocessing, which pass exceptions on to their parent."""
    torch.multiprocessing.spawn(spawned, nprocs=1)


def processes():
    """Ranks made by multiprocessing."""
    import multiprocessing

    process = multiprocessing.get_context(sys.argv[2]).Process(target=spawned, args=(0,))
    process.start()
    process.join()
    sys.exit(process.exitcode)


def meta():
    """What stands for tensors is not recorded."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    alone()
    with FakeTensorMode():
        dist.all_reduce(torch.ones(2))
    dist.all_reduce(torch.ones(3))


def asleep():
    """Sleeps once it has made a call, until it is told to go on."""
    alone()
    dist.all_reduce(torch.ones(1))
    print("ready", flush=True)
    sys.stdin.readline()
    dist.all_reduce(torch.ones(2))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
