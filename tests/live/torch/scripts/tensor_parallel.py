"""A two-layer MLP over a mesh, its weights cut by columns and by rows."""

import torch
from ledger import finish, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

rank, size = start()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
mesh = init_device_mesh("cpu", (size,))
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
for _ in range(2):
    model(torch.randn(4, 16)).sum().backward()
finish()
