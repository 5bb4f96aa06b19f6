import sys

from dumps import Job

# Work of the optimizer between a reduction and the next, in turn on other ranks longest: a spread of a tenth.
WORK_MS = [9.98, 10.12, 9.46, 9.40, 9.17, 9.58, 9.51, 9.44]

job = Job(world=8, step_ns=30_000_000)
job.group("0", "default_pg", range(8))
for step in range(24):
    job.call(range(8), "0", "all_reduce", [4096])
    for rank in range(8):
        entry = job.ranks[rank].entries[-1]
        work = WORK_MS[rank] if step == 12 else 9.4 + ((step * 5 + rank * 3) % 8) * 0.1
        start = job.now + int(work * 1e6)
        entry["time_created_ns"] = start - 5_000
        entry["time_discovered_started_ns"] = start
        entry["time_discovered_completed_ns"] = job.now + 12_000_000
job.write(sys.argv[1])
