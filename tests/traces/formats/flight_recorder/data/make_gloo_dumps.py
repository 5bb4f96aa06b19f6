#!/usr/bin/env python3
"""Writes flight-recorder dumps of a small two-rank gloo job, as pickle and as JSON.

Usage: make_dumps.py FOLDER   (needs torch >= 2.9; the fixtures here are of torch 2.13)
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29617", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    pair = dist.new_group([0, 1], group_desc="pair")
    x = torch.ones(4, 3)
    for _ in range(2):
        dist.all_reduce(x)
    parts = [torch.empty(4, 3) for _ in range(2)]
    dist.all_gather(parts, x)
    dist.broadcast(torch.ones(5, dtype=torch.int64), src=0, group=pair)
    dist.all_gather_into_tensor(torch.empty(6), torch.ones(3))
    dist.all_to_all_single(torch.empty(4), torch.ones(4), group=pair)
    dist.reduce_scatter_tensor(torch.empty(3), torch.ones(6))
    dist.barrier()
    if rank == 0:
        dist.send(torch.ones(7, dtype=torch.bfloat16), 1)
        dist.gather(x, parts, dst=0)
    else:
        dist.recv(torch.ones(7, dtype=torch.bfloat16), 0)
        dist.gather(x, dst=0)
    # Rank 1 never joins this one: it is in flight when rank 0 dumps.
    work = dist.all_reduce(torch.ones(9), async_op=True) if rank == 0 else None

    recorder = torch._C._distributed_c10d
    with open(f"{folder}/gloo_rank_{rank}", "wb") as out:
        out.write(recorder._dump_fr_trace())
    with open(f"{folder}/gloo_rank_{rank}.json", "wb") as out:
        out.write(recorder._dump_fr_trace_json())
    os._exit(0)  # without the goodbye that would wait for the other rank


if __name__ == "__main__":
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")
    workers = mp.get_context("spawn")
    processes = [workers.Process(target=train, args=(rank, sys.argv[1])) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
