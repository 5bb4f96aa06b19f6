import sys

from dumps import Job

job = Job(world=16)
job.group("0", "default_pg", range(16))
for node in range(4):
    job.group(f"tp{node}", "mesh_tp", range(node * 4, node * 4 + 4))
for step in range(20):
    for node in range(4):
        ranks = range(node * 4, node * 4 + 4)
        odd = step == 11 and node == 3
        job.call([r for r in ranks if not (odd and r == 13)], f"tp{node}", "all_reduce", [2048], dtype="bf16")
        if odd:
            job.call([13], f"tp{node}", "all_reduce", [2046], dtype="bf16")
    job.call(range(16), "0", "all_reduce", [1])
job.write(sys.argv[1], pickled=True)
