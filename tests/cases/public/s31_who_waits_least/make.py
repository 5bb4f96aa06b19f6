import sys

from dumps import Job

# Time inside of each all_reduce; it ends on all ranks at once, so rank 2 came 8.5 ms after the others.
INSIDE_MS = [9.8, 9.7, 1.2, 9.9, 9.6, 9.8, 9.7, 9.9]

job = Job(world=8, step_ns=30_000_000)
job.group("0", "default_pg", range(8))
for step in range(24):
    job.call(range(8), "0", "all_reduce", [4096])
    end = job.now + 12_000_000
    for rank, inside in enumerate(INSIDE_MS):
        entry = job.ranks[rank].entries[-1]
        jitter = ((step * 7 + rank * 3) % 5 - 2) * 20_000
        entry["time_created_ns"] = end - int(inside * 1e6) + jitter - 5_000
        entry["time_discovered_started_ns"] = end - int(inside * 1e6) + jitter
        entry["time_discovered_completed_ns"] = end
job.write(sys.argv[1])
