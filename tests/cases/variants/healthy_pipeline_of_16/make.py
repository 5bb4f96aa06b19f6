"""A healthy job: 4 stages of a pipeline on 4 ranks each, all rings full.

The stages issue unlike numbers of operations a step (embedding and loss on the outer ones, two sends and receives on the
inner ones), so rings of one capacity begin at unlike steps and at unlike record ids. Whoever lines them up by position
or by record id sees ranks that "did not join". Everything is complete.
"""
import sys

from dumps import Job

STAGES, WIDTH, STEPS, MICRO = 4, 4, 300, 4
job = Job(world=STAGES * WIDTH, capacity=400)
job.group("0", "default_pg", range(16))
for stage in range(STAGES):
    job.group(str(1 + stage), f"mesh_tp_{stage}", range(stage * WIDTH, (stage + 1) * WIDTH))
for lane in range(WIDTH):
    job.group(str(5 + lane), f"mesh_pp_{lane}", range(lane, 16, WIDTH))
job.group("9", "embedding", [r for r in range(16) if r < WIDTH or r >= 12])
for step in range(STEPS):
    for micro in range(MICRO):
        for stage in range(STAGES):
            ranks = range(stage * WIDTH, (stage + 1) * WIDTH)
            if stage > 0:
                for rank in ranks:
                    job.send(rank - WIDTH, rank, str(5 + rank % WIDTH), [8, 1024], "bf16")
                    job.recv(rank, rank - WIDTH, str(5 + rank % WIDTH), [8, 1024], "bf16")
            for layer in range(2 if stage in (0, 3) else 5):
                job.call(ranks, str(1 + stage), "all_reduce", [8, 1024], dtype="bf16", line=30 + layer)
    job.call([r for r in range(16) if r < WIDTH or r >= 12], "9", "all_reduce", [4096, 64], dtype="bf16", line=40)
    if step % 100 == 99:
        job.call(range(16), "0", "all_reduce", [1], line=50)
job.write(sys.argv[1], pickled=True)
