import sys

from dumps import Job

job = Job(world=3, version="2.11")
job.group("0", "default_pg", range(3))
job.call(range(3), "0", "all_reduce", [64])
splits = {0: ([2, 3, 1], [2, 1, 4]), 1: ([1, 2, 2], [1, 2, 3]), 2: ([4, 1, 1], [1, 2, 1])}
for rank, (sent, expected) in splits.items():
    job.call([rank], "0", "all_to_all", [sum(sent)], [sum(expected)], state="started", splits=splits)
job.write(sys.argv[1])
