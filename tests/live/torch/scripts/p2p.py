"""Sends and receives around a ring: batched, alone, waiting, from anybody."""

import torch
import torch.distributed as dist
from ledger import finish, ledger, start

rank, size = start()
following, before = (rank + 1) % size, (rank - 1) % size
t = torch.ones(5)
with ledger():
    for _ in range(2):
        batch = [dist.P2POp(dist.isend, t, following), dist.P2POp(dist.irecv, torch.empty(5), before)]
        for request in dist.batch_isend_irecv(batch):
            request.wait()
    sending = dist.isend(t.to(torch.bfloat16), following, tag=3)
    dist.recv(torch.empty(5, dtype=torch.bfloat16), before, tag=3)
    sending.wait()
    receiving = dist.irecv(torch.empty(7), before)
    dist.send(torch.ones(7), following)
    receiving.wait()
    sending = dist.isend(torch.ones(2), following, tag=9)
    dist.recv(torch.empty(2), None, tag=9)
    sending.wait()
finish()
