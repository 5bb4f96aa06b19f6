"""DDP whose reducer rebuilds its buckets after the first step."""

import torch
from ledger import finish, ledger, start
from torch.nn.parallel import DistributedDataParallel

rank, size = start()
torch.manual_seed(rank)
with ledger():
    layers = [torch.nn.Linear(64, 64) for _ in range(6)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(64)), bucket_cap_mb=0.03)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
finish()
