"""Collectives of Python's objects."""

import torch.distributed as dist
from ledger import finish, ledger, start

rank, size = start()
with ledger():
    everyone = [None] * size
    dist.all_gather_object(everyone, {"rank": rank})
    told = ["x" * 10, rank] if rank == 1 else [None, None]
    dist.broadcast_object_list(told, src=1)
    dist.gather_object(rank, [None] * size if rank == 0 else None, dst=0)
    mine = [None]
    dist.scatter_object_list(mine, list(range(size)) if rank == 0 else None, src=0)
finish()
