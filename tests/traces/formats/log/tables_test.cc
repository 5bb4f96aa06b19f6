#include "traces/formats/tables.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

TEST(Tables, AddressesInAnyOrderAndQuoted) {
  const Evidence evidence = read_as(address_table_importer(),
                                    "\xEF\xBB\xBFip,\"host\",rank\r\n192.0.2.21,\"node-a, rack "
                                    "\"\"1\"\"\",3\r\n\r\n192.0.2.22,node-b,9\r\n198.51.100.1,node-c,x\r\n",
                                    "addresses.csv");
  const auto rows = facts_of<RankAddress>(evidence);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rank, RankId(3));
  EXPECT_EQ(rows[0].host, "node-a, rack \"1\"");
  EXPECT_EQ(rows[0].address, "192.0.2.21");
  EXPECT_EQ(rows[1].rank, RankId(9));
  EXPECT_EQ(evidence.events[1].line, 4U);
  EXPECT_EQ(evidence.diagnostics.count_of("table.bad_rank"), 1U);
  EXPECT_EQ(evidence.inputs[0].ranks, (RankSet{RankId(3), RankId(9)}));
}

TEST(Tables, EnvironmentsAreLeftForCheckButSayWhoIsWhere) {
  const Evidence with_hosts = read_as(
      env_table_importer(), "host,ip,RANK,WORLD_SIZE\nnode-01,192.0.2.20,0,16\nnode-02,192.0.2.21,8,16\n", "env.csv");
  EXPECT_EQ(with_hosts.inputs[0].note, "describes the launch, which this version does not judge");
  const auto rows = facts_of<RankAddress>(with_hosts);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].rank, RankId(8));
  EXPECT_EQ(rows[1].host, "node-02");
  EXPECT_EQ(rows[1].address, "192.0.2.21");
  const Evidence without = read_as(env_table_importer(), "SLURM_PROCID,SLURM_LOCALID\n0,0\n", "env.csv");
  EXPECT_TRUE(without.events.empty());
  EXPECT_EQ(without.inputs[0].note, "describes the launch, which this version does not judge");
  EXPECT_EQ(read_as(env_table_importer(), "SLURM_NNODES=4\n", "s.env").inputs[0].note,
            "describes the launch, which this version does not judge");
}

TEST(Tables, LaunchFilesAreNamedOnly) {
  const Evidence evidence = read_as(launch_file_importer(), "srun -N1 -n2 python train.py\n", "launch.txt");
  EXPECT_EQ(evidence.inputs[0].note, "describes the launch, which this version does not judge");
  EXPECT_TRUE(evidence.events.empty());
}

struct SniffCase {
  std::string path, head;
  std::string format;  // who should read it; empty: nobody of these
};

TEST(Tables, WhoReadsWhat) {
  const std::vector<Importer> all{address_table_importer(), env_table_importer(), launch_file_importer(),
                                  log_importer()};
  const std::vector<SniffCase> cases{
      {"addresses.csv", "rank,host,ip\n", "address-table"},
      {"env.csv", "host,RANK,WORLD_SIZE\n", "env-table"},
      {"env.csv", "host,SLURM_PROCID,CUDA_VISIBLE_DEVICES\n", "env-table"},
      {"latency.csv", "step,ms\n1,2\n", ""},
      {"scheduler.env", "SLURM_JOB_ID=4711\nexport SLURM_NNODES=4\n", "env-table"},
      {"launch.txt", "# node-a\ntorchrun --nnodes=2 a.py\n", "launch"},
      {"launch.txt", "python -m torch.distributed.run --nproc_per_node 4 a.py\n", "launch"},
      {"job.sbatch", "#SBATCH --nodes=1\nsrun train\n", "launch"},
      {"run.sh", "#!/bin/bash\nset -e\nNCCL_DEBUG=INFO OMP_NUM_THREADS=1 /usr/bin/mpirun -np 2 ./a\n", "launch"},
      {"job.yaml", "kind: PyTorchJob\nspec:\n", "launch"},
      {"values.yaml", "kind: Service\n", ""},
      {"hostfile", "node-a slots=8\nnode-b slots=8\n", "launch"},
      {"slurm_out", "torchrun --nproc-per-node=8 train.py\n[rank3]: KeyError: 5\n", "log"},
      {"train_log.txt",
       "/usr/lib/torch/distributed/launch.py:181: The module torch.distributed.launch is deprecated\n"
       "[rank3]: KeyError: 5\n",
       "log"},
      {"warnings.txt", "The module torch.distributed.launch is deprecated. Use torchrun.\n", "log"},
      {"launch.log", "torchrun --nproc-per-node=8 train.py\n", "log"},
      {"launcher_output", "+ torchrun train.py\nsrun: error: node-a: task 3: Killed\n", "log"},
      {"slurm-7.out", "#!/bin/bash\nsrun python train.py\n", "log"},
      {"job", "#!/bin/bash\necho \"Error: no node\"\nsrun python train.py\n", "launch"},
      {"job.log", "+ srun -n2 python train.py\nEpoch 1\n", "log"},
      {"err.log", "srun: error: node-a: task 3: Killed\n", "log"},
      {"notes.md", "Traceback (most recent call last):\n", ""},
  };
  for (const SniffCase& c : cases) {
    SCOPED_TRACE(c.path);
    std::string best;
    Sniff score = Sniff::no;
    for (const Importer& importer : all) {
      const Sniff sniff = importer.sniff(c.path, c.head);
      if (sniff > score) {
        score = sniff;
        best = importer.name;
      }
    }
    EXPECT_EQ(best, c.format);
  }
}

TEST(Tables, BrokenTables) {
  for (const std::string text : {"", "\n", "rank", "rank,host,ip", "rank,host,ip\n\"unclosed", "rank,host,ip\n,,\n",
                                 ",,,,\n1,2", "rank,ip\n99999999999999999999,1\n"}) {
    SCOPED_TRACE(text);
    const Evidence evidence = read_as(address_table_importer(), text, "a.csv");
    EXPECT_LE(evidence.events.size(), 1U);
    read_as(env_table_importer(), text, "a.csv");
  }
  const Evidence wide = read_as(address_table_importer(), "rank,host,ip\n" + std::string(1'000'000, ','), "a.csv");
  EXPECT_EQ(wide.diagnostics.count_of("table.too_long"), 1U);
}

}  // namespace
}  // namespace ddx::formats
