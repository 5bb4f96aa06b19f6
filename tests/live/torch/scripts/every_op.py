"""One call of each kind, with arguments that differ from each other."""

import torch
import torch.distributed as dist
from ledger import finish, ledger, start, watch

rank, size = start()
# Not from 0 on: in it a root's position is not its rank.
group = dist.new_group(list(range(1, size)), group_desc="others")
alone = dist.new_group([0], use_local_synchronization=True)
if rank > 0:
    watch(group)
with ledger():
    dist.all_reduce(torch.ones(3, dtype=torch.float64), op=dist.ReduceOp.PRODUCT)
    if rank > 0:
        dist.all_reduce(torch.ones(2, dtype=torch.int64), op=dist.ReduceOp.BOR, group=group)
        dist.broadcast(torch.ones(4, dtype=torch.float16), src=2, group=group)
    dist.reduce(torch.ones(5), dst=1, op=dist.ReduceOp.MAX)
    dist.all_gather([torch.empty(6, dtype=torch.bool) for _ in range(size)], torch.ones(6, dtype=torch.bool))
    dist.gather(torch.ones(7), [torch.empty(7) for _ in range(size)] if rank == 1 else None, dst=1)
    dist.scatter(torch.empty(8), [torch.ones(8) for _ in range(size)] if rank == 1 else None, src=1)
    dist.reduce_scatter(torch.empty(9), [torch.ones(9) for _ in range(size)])
    # Rank r sends i + 1 rows of 3 to rank i.
    sizes = [i + 1 for i in range(size)]
    dist.all_to_all_single(torch.empty((rank + 1) * size, 3), torch.ones(sum(sizes), 3), [rank + 1] * size, sizes)
    waiting = dist.all_reduce(torch.ones(10, dtype=torch.uint8), async_op=True)
    waiting.wait()
    dist.monitored_barrier()
finish()
