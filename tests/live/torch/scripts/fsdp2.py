"""FSDP2 on the CPU: parameters sharded per layer."""

import torch
from ledger import finish, ledger, start
from torch.distributed.fsdp import fully_shard

rank, size = start()
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(3)])
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 32)).sum().backward()
    optimizer.step()
finish()
