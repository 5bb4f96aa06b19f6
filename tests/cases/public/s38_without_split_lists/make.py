import sys

from dumps import Job

# Version 2.10 has no lists: sizes of an all_to_all may differ by right, so nothing can be told.
job = Job(world=3, version="2.10")
job.group("0", "default_pg", range(3))
job.call(range(3), "0", "all_reduce", [64])
for rank, (sent, expected) in enumerate([(6, 7), (5, 6), (6, 4)]):
    job.call([rank], "0", "all_to_all", [sent], [expected], state="started")
job.write(sys.argv[1])
