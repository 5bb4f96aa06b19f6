// Tables as users keep them, and what follows from their figures. Expected values are worked out beside each.
#include "analyzers/scaling/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "traces/formats/scaling_table.h"

namespace ddx::analyzers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ScalingTable table_of(const std::string& text) {
  Diagnostics diagnostics;
  return formats::read_scaling_table("runs.csv", text, diagnostics);
}
ScalingAnswer judged(const std::string& text) { return judge_scaling(table_of(text)); }

const Finding* find(const ScalingAnswer& answer, std::string_view code) {
  for (const Finding& f : answer.findings) {
    if (f.code == code) return &f;
  }
  return nullptr;
}

std::string all_text(const ScalingAnswer& answer) {
  std::string text;
  for (const Finding& f : answer.findings) text += f.summary + "\n" + f.explanation + f.advice + "\n";
  return text;
}

std::vector<std::string> codes(const ScalingAnswer& answer) {
  std::vector<std::string> all;
  for (const Finding& f : answer.findings) all.push_back(f.code);
  return all;
}

// pytorch/pytorch#17159: a maintainer's figures.
constexpr const char* kOneNode =
    "nodes,gpus_per_node,per_gpu_samples_per_s\n"
    "1,1,122\n"
    "1,2,115\n"
    "1,4,111\n"
    "1,8,110\n";

TEST(Scaling, the_step_at_the_border_of_a_node) {
  const ScalingAnswer answer = judged(std::string(kOneNode) + "2,8,80\n");
  ASSERT_EQ(answer.points.size(), 5U);
  // 115/122, 111/122, 110/122, 80/122.
  EXPECT_NEAR(answer.points[1].efficiency, 0.943, 5e-4);
  EXPECT_NEAR(answer.points[2].efficiency, 0.910, 5e-4);
  EXPECT_NEAR(answer.points[3].efficiency, 0.902, 5e-4);
  EXPECT_NEAR(answer.points[4].efficiency, 0.656, 5e-4);
  EXPECT_DOUBLE_EQ(answer.points[4].rate, 1280);
  // 1 M samples at 122 a second are 8,197 s of one GPU: 2.277 h.
  EXPECT_NEAR(*answer.points[0].gpu_hours, 2.277, 1e-3);
  EXPECT_EQ(codes(answer), (std::vector<std::string>{"scaling", "scaling-info"}));
  const Finding& f = *find(answer, "scaling");
  EXPECT_EQ(f.severity, Severity::info);
  EXPECT_TRUE(f.ranks.empty());
  EXPECT_THAT(f.summary, HasSubstr("border of the node"));
  EXPECT_THAT(f.explanation, HasSubstr("880 to 1,280 samples a second, 1.45x for 2x"));
  EXPECT_THAT(f.explanation, HasSubstr("4 x 8 = 2,560 samples a second at best"));
}

TEST(Scaling, one_node_says_nothing_of_two) {
  const ScalingAnswer answer = judged(kOneNode);
  const Finding* f = find(answer, "scaling-info");
  ASSERT_NE(f, nullptr);
  EXPECT_THAT(f->explanation, HasSubstr("a prediction for 2 nodes (16 GPUs) is refused"));
  EXPECT_THAT(f->explanation, HasSubstr("At best it is 1,760 samples a second"));
  // What the curve of one node would give, carried on: 1,733 of all, 108 a GPU.
  for (const char* wrong : {"108", "109", "1,73", "1,74"}) EXPECT_THAT(all_text(answer), Not(HasSubstr(wrong)));
}

// NVIDIA/nccl#318: 36 minutes on one node, 105 on two with 25 Gb/s.
TEST(Scaling, two_nodes_slower_than_one) {
  const ScalingAnswer answer = judged(
      "nodes,gpus,minutes,link_gbit,gradient_bytes,steps\n"
      "1,8,36,,440000000,6000\n"
      "2,16,105,25,440000000,3000\n");
  const Finding* f = find(answer, "scaling-negative");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->severity, Severity::warning);
  EXPECT_EQ(f->summary, "From 8 to 16 GPUs (1 to 2 nodes), 2x the GPUs take 2.92x the time");
  // 2*15/16*440 MB = 825 MB; over 3.125 GB/s 0.264 s; 3,000 times 13.2 min; and 36/2 min.
  EXPECT_THAT(f->explanation, HasSubstr("825 MB a step"));
  EXPECT_THAT(f->explanation, HasSubstr("3,000 steps: 13.2 min of pure transfer at full rate, to the ideal 18 min"));
  EXPECT_THAT(f->explanation, HasSubstr("Bandwidth alone explains 31.2 of 105 min: something else"));
  EXPECT_THAT(f->explanation, HasSubstr("counts as fully used"));
  // 16 GPUs for 105 min.
  EXPECT_DOUBLE_EQ(*answer.points[1].gpu_hours, 28);
}

TEST(Scaling, steps_are_those_of_the_same_work_where_they_are_not_given) {
  const ScalingAnswer answer =
      judged("nodes,gpus,minutes,link_gbit,gradient_bytes,steps\n1,8,36,,440000000,6000\n2,16,105,25,440000000,\n");
  EXPECT_THAT(find(answer, "scaling-negative")->explanation, HasSubstr("3,000 steps"));
}

TEST(Scaling, without_figures_nothing_is_decomposed) {
  const ScalingAnswer answer = judged("nodes,gpus,minutes,link_gbit\n1,8,36,\n2,16,105,25\n");
  ASSERT_NE(find(answer, "scaling-negative"), nullptr);
  EXPECT_THAT(all_text(answer), Not(HasSubstr("MB")));
}

// aliyun/SimAI#105: bus bandwidth above the link.
TEST(Scaling, collectives_that_cannot_be) {
  const ScalingAnswer answer = judged(
      "op,group_size,bytes,time_us,link_gbyte_s\n"
      "all_reduce,128,1073741824,30000,12.5\n"
      "all_gather,8,67108864,400,300\n"
      "all_reduce,8,65536,-1,300\n");
  const Finding* f = find(answer, "sim-implausible");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->severity, Severity::error);
  EXPECT_EQ(f->subjects, (std::vector<std::string>{"row 1", "row 3"}));
  // 2*127/128*2^30 / 0.03 = 71.0e9; 71/12.5 = 5.7.
  EXPECT_THAT(f->explanation, HasSubstr("= 71 GB/s over a link of 12.5 GB/s: impossible, unless 6 links"));
  EXPECT_THAT(f->explanation, HasSubstr("negative"));
  ASSERT_EQ(answer.collectives.size(), 3U);
  EXPECT_NEAR(*answer.collectives[1].bus_bytes, 146.8e9, 1e8);
  EXPECT_EQ(answer.collectives[2].bus_bytes, std::nullopt);
  EXPECT_THAT(find(answer, "scaling-info")->explanation, HasSubstr("147 GB/s of the link's 300 GB/s: plausible"));
}

TEST(Scaling, switches_that_reduce_may_double_an_all_reduce) {
  // 2*7/8*1 GB in 4 ms = 437.5 GB/s over 300: more than a ring can, less than twice.
  const ScalingAnswer answer =
      judged("op,ranks,bytes,time_ms,link_gbyte_s\nAllReduce,8,1000000000,4,300\nAllGather,8,1000000000,2,300\n");
  EXPECT_EQ(find(answer, "sim-implausible")->subjects, std::vector<std::string>{"row 2"});
  EXPECT_THAT(find(answer, "scaling-info")->explanation, HasSubstr("only where the network itself reduces"));
}

TEST(Scaling, a_step_too_short_for_its_gradients) {
  // 440 MB over 25 Gb/s take 141 ms at least.
  const ScalingAnswer answer = judged(
      "nodes,gpus,step_ms,link_gbit,gradient_bytes\n1,8,100,25,440000000\n2,16,110,25,440000000\n4,32,150,25,"
      "440000000\n");
  ASSERT_NE(find(answer, "sim-implausible"), nullptr);
  EXPECT_EQ(find(answer, "sim-implausible")->subjects, std::vector<std::string>{"row 2"});
}

TEST(Scaling, failed_runs_are_no_results) {
  const ScalingAnswer answer = judged("gpus,tokens_per_s\n8,800\n16,-1\n32,3000\n64,0\n");
  ASSERT_NE(find(answer, "sim-implausible"), nullptr);
  EXPECT_EQ(find(answer, "sim-implausible")->subjects, (std::vector<std::string>{"row 2", "row 4"}));
  EXPECT_EQ(answer.points.size(), 2U);
}

TEST(Scaling, no_gain_is_flat) {
  const ScalingAnswer answer = judged("gpus,images_per_s\n8,1000\n16,1900\n32,1930\n");
  const Finding* f = find(answer, "scaling-flat");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->severity, Severity::warning);
  EXPECT_THAT(f->explanation, HasSubstr("From 16 to 32 GPUs"));
  EXPECT_EQ(find(answer, "scaling-negative"), nullptr);
  EXPECT_EQ(find(judged("gpus,images_per_s\n8,1000\n9,1020\n"), "scaling-flat"), nullptr) << "one more GPU";
}

TEST(Scaling, repeated_rows_say_what_is_chance) {
  // Medians 1,000 and 960; the rows of 8 differ by 12 %.
  const ScalingAnswer noisy = judged("gpus,images_per_s\n8,940\n8,1000\n8,1060\n16,960\n");
  EXPECT_EQ(find(noisy, "scaling-negative"), nullptr);
  EXPECT_THAT(find(noisy, "scaling-info")->explanation, HasSubstr("12.0 %"));
  const ScalingAnswer quiet = judged("gpus,images_per_s\n8,999\n8,1000\n8,1001\n16,960\n");
  EXPECT_NE(find(quiet, "scaling-negative"), nullptr);
}

TEST(Scaling, more_than_linear_wants_a_reason) {
  EXPECT_THAT(all_text(judged("nodes,gpus,samples_per_s\n1,1,100\n1,4,480\n2,8,900\n")), HasSubstr("above 1"));
}

TEST(Scaling, every_way_to_say_the_same_gives_the_same) {
  // Four times the GPUs, 3.2 times the work.
  for (const char* text : {
           "gpus,samples_per_s\n2,100\n8,320\n",
           "ranks,img/s\n2,100\n8,320\n",
           "world_size;tokens/s/GPU\n2;50\n8;40\n",
           "World Size\tThroughput per GPU\n2\t50\n8\t40\n",
           "# my runs\nnum_gpus,per_gpu_images_per_sec\n2,50\n8,40\n",
           "gpus,step_ms,global_batch\n2,1000,100\n8,625,200\n",
           "gpus,step time (ms),batch_per_gpu\n2,1000,50\n8,1250,50\n",
           "gpus,s/iter\n2,1\n8,1.25\n",
           "gpus,steps/s\n2,1\n8,0.8\n",
           "gpus,minutes\n2,32\n8,10\n",
           "GPUs,epoch_s\n2,\"3,200\"\n8,\"1,000\"\n",
           "nodes,ppn,hours\n1,2,3.2\n4,2,1\n",
           "\xEF\xBB\xBFgpus,samples_per_s\r\n8,320\r\n2,100\r\n",
           "gpus;samples_per_s\n2;1000,5\n8;3201,6\n",
           "gpus;samples_per_s\n2;1.000,5\n8;3.201,6\n",
           "gpus,samples_per_s\n2,\"1000,5\"\n8,\"3201,6\"\n",
           "gpus\tsamples_per_s\n2\t1,000.5\n8\t3,201.6\n",
           "gpus;samples_per_s\n2;1,000,000\n8;3,200,000\n",
           "gpus;samples_per_s\n2;1.000.000\n8;3.200.000\n",
           "gpus;samples_per_s\n2;1,000\n8;3,200\n",
           "gpus;s/iter\n2;0,125\n8;0,15625\n",
       }) {
    const ScalingAnswer answer = judged(text);
    ASSERT_EQ(answer.points.size(), 2U) << text;
    EXPECT_EQ(answer.points[0].gpus, 2U) << text;
    EXPECT_EQ(answer.points[1].gpus, 8U) << text;
    EXPECT_NEAR(answer.points[1].speedup, 3.2, 1e-9) << text;
    EXPECT_NEAR(answer.points[1].efficiency, 0.8, 1e-9) << text;
  }
}

// One table is written in one way: numbers that can be read but one way decide for those that can be read in two.
TEST(ScalingTable, marks_in_numbers_follow_from_all_of_them) {
  const auto rates = [](const std::string& text) {
    std::vector<double> all;
    for (const ScalingRun& run : table_of(text).runs) all.push_back(*run.rate);
    return all;
  };
  using testing::ElementsAre;
  EXPECT_THAT(rates("gpus;samples_per_s\n8;1000,5\n16;1900,25\n"), ElementsAre(1000.5, 1900.25));
  EXPECT_THAT(rates("gpus;samples_per_s\n8;1,250\n16;1900,25\n"), ElementsAre(1.25, 1900.25));
  EXPECT_THAT(rates("gpus;samples_per_s\n8;1,250\n16;1900.25\n"), ElementsAre(1250, 1900.25));
  EXPECT_THAT(rates("gpus;samples_per_s\n1,024;1,250\n2,048;1,900\n"), ElementsAre(1250, 1900));
  EXPECT_THAT(rates("gpus;samples_per_s\n1.024;1,250\n2.048;1,900\n"), ElementsAre(1.25, 1.9));
  EXPECT_THAT(rates("gpus;samples_per_s;note\n8;1.5;1,5\n16;2.5;\n"), ElementsAre(1.5, 2.5))
      << "no number is read there";
  EXPECT_THAT(rates("gpus;samples_per_s\n8;1e3\n16;2_000\n"), ElementsAre(1000, 2000));
}

// Why a table is none.
std::string error(const std::string& text) {
  Diagnostics diagnostics;
  try {
    formats::read_scaling_table("runs.csv", text, diagnostics);
  } catch (const Error& e) {
    return e.what();
  }
  return "read";
}

TEST(ScalingTable, contradictions_name_both_cells) {
  const std::string two = error("gpus;samples_per_s\n8;1000,5\n16;1900.25\n");
  EXPECT_THAT(two,
              testing::AllOf(HasSubstr("runs.csv"), HasSubstr("1000,5"), HasSubstr("1900.25"), HasSubstr("line 3")));
  for (const char* column : {"link_gb", "LINK_GB", "LINK_GBPS", "network gb/s"}) {
    EXPECT_THAT(error(std::string("gpus;step_ms;") + column + "\n8;1;2\n"),
                testing::AllOf(HasSubstr(column), HasSubstr("bits and bytes")))
        << column;
  }
}

TEST(ScalingTable, a_comma_too_many_is_not_read_past) {
  Diagnostics diagnostics;
  const ScalingTable table =
      formats::read_scaling_table("runs.csv", "gpus,samples_per_s\n8,1000,5\n16,1900,\n32,3000\n", diagnostics);
  EXPECT_EQ(table.runs.size(), 2U);
  EXPECT_EQ(diagnostics.count_of("measured.bad_row"), 1U);
}

TEST(ScalingTable, bits_and_bytes_of_a_link) {
  const auto link = [](const std::string& column) {
    return *table_of("gpus;step_ms;" + column + "\n8;1;400\n").runs.front().link_bytes;
  };
  for (const char* bits : {"link_Gb", "link_gbit", "Link (Gb/s)", "nic Gbps", "network_gbps", "LINK_GBIT"}) {
    EXPECT_DOUBLE_EQ(link(bits), 50e9) << bits;
  }
  for (const char* bytes : {"link_GB", "link_gbyte_s", "Link (GB/s)", "nic GBps", "LINK_GBYTES"}) {
    EXPECT_DOUBLE_EQ(link(bytes), 400e9) << bytes;
  }
}

// 100 ms on 8, 55 on 16, 30 on 32: 3.33 times the work of a fixed batch, and 13.3 if each GPU kept its own.
TEST(Scaling, bare_steps_that_fall_are_of_a_fixed_batch) {
  for (const char* text :
       {"gpus,step_ms\n8,100\n16,55\n32,30\n", "gpus,steps/s\n8,10\n16,18.181818181818183\n32,33.333333333333336\n"}) {
    const ScalingAnswer answer = judged(text);
    EXPECT_NEAR(answer.points[2].speedup, 10.0 / 3, 1e-9) << text;
    EXPECT_NEAR(answer.points[2].efficiency, 10.0 / 12, 1e-9) << text;
    EXPECT_THAT(find(answer, "scaling")->summary, HasSubstr("strong scaling")) << text;
    EXPECT_THAT(find(answer, "scaling-info")->explanation, HasSubstr("would be 3.33, which cannot be")) << text;
  }
  const ScalingAnswer kept = judged("gpus,step_ms\n8,100\n16,105\n");
  EXPECT_NEAR(kept.points[1].efficiency, 100.0 / 105, 1e-9) << "each GPU keeps its batch";
  EXPECT_THAT(find(kept, "scaling")->summary, Not(HasSubstr("strong")));
  const ScalingAnswer told = judged("gpus,step_ms,batch_per_gpu\n8,100,1\n16,55,1\n");
  EXPECT_NEAR(told.points[1].efficiency, 100.0 / 55, 1e-9) << "the batch is given";
}

TEST(Scaling, sizes_may_be_nodes_alone) {
  const ScalingAnswer answer = judged("nodes,tokens_per_s\n1,1000\n2,1800\n4,3000\n");
  EXPECT_EQ(answer.size_word, "node");
  EXPECT_NEAR(answer.points[2].efficiency, 0.75, 1e-9);
  EXPECT_EQ(answer.points[2].gpu_hours, std::nullopt);
}

TEST(Scaling, one_size_says_nothing_of_scaling) {
  EXPECT_EQ(codes(judged("gpus,samples_per_s\n8,100\n")), std::vector<std::string>{"scaling-info"});
  for (const char* text : {"gpus,samples_per_s\n8,100\n", "gpus,samples_per_s\n8,100\n8,104\n",
                           "gpus,samples_per_s\n8,100\n16,abc\n", "gpus,samples_per_s\n8,100\n16,0\n"}) {
    EXPECT_THAT(judged(text).undecided, HasSubstr("one size alone (8 GPUs)")) << text;
  }
  EXPECT_EQ(judged("gpus,samples_per_s\n8,100\n16,190\n").undecided, "");
  EXPECT_THAT(judged("op,ranks,bytes,time_us\nall_reduce,8,1000,10\nfoo,8,1000,4\n").undecided,
              HasSubstr("figure of its link"));
  EXPECT_EQ(judged("op,ranks,bytes,time_us,link_gbyte_s\nall_reduce,8,1000,10,450\n").undecided, "");
}

// What cannot be is in no table, no efficiency and no advice.
TEST(Scaling, rows_that_cannot_be_are_used_for_nothing) {
  const ScalingAnswer fast = judged(
      "nodes,gpus_per_node,step_ms,gradient_bytes,link_gbit,global_batch\n1,8,10,4000000000,100,8\n"
      "2,8,12,4000000000,100,16\n4,8,900,4000000000,100,32\n");
  ASSERT_EQ(fast.points.size(), 2U);
  EXPECT_EQ(fast.points[1].gpus, 32U);
  EXPECT_THAT(find(fast, "sim-implausible")->summary, HasSubstr("is left out: row 2"));
  EXPECT_THAT(find(fast, "sim-implausible")->advice, Not(HasSubstr("-1 and 0"))) << "it did not fail";
  EXPECT_THAT(find(judged("gpus,samples_per_s\n8,100\n16,-1\n32,350\n"), "sim-implausible")->advice,
              HasSubstr("-1 and 0"));
}

// Against the neighbour and against the smallest are two things, and one word is for one of them.
TEST(Scaling, efficiency_is_against_the_smallest) {
  const ScalingAnswer answer = judged("gpus,images_per_s\n8,96\n64,704\n128,640\n256,665\n");
  EXPECT_EQ(find(answer, "scaling-negative")->summary, "From 64 to 128 GPUs, 2x the GPUs do 0.91x the work");
  EXPECT_EQ(find(answer, "scaling-flat")->summary, "From 128 to 256 GPUs, 2x the GPUs do 1.04x the work");
  for (const char* code : {"scaling-negative", "scaling-flat"}) {
    EXPECT_THAT(find(answer, code)->explanation, Not(HasSubstr("efficiency")));
  }
}

// 2*7/8 of 10^9 bytes in 1.5 ms: 1,167 GB/s, in the table and in words.
TEST(Scaling, sums_are_in_the_units_of_the_table) {
  const ScalingAnswer answer =
      judged("op,ranks,bytes,time_us,link_gbyte_s\nall_reduce,8,1000000000,1500,450\nfoo,8,1000,4,450\n");
  const Finding& f = *find(answer, "sim-implausible");
  EXPECT_EQ(f.summary, "1 of 2 rows cannot be: row 1");
  EXPECT_THAT(f.explanation, HasSubstr("2*(7/8) * 1,000,000,000 bytes / 1.5 ms = 1,167 GB/s over a link of 450 GB/s"));
  for (const EvidenceLine& seen : f.evidence) EXPECT_THAT(seen.text, Not(HasSubstr("GB/s"))) << "said once";
  EXPECT_THAT(find(answer, "scaling-info")->summary, HasSubstr("not known: foo"));
}

TEST(ScalingTable, sizes_that_contradict_each_other_are_no_row) {
  const auto rows = [](const std::string& text) { return table_of(text).runs.size(); };
  const std::string head = "gpus,nodes,gpus_per_node,step_ms\n16,2,8,1\n";
  EXPECT_EQ(rows(head + "8,2,8,1\n"), 1U);
  EXPECT_EQ(rows(head + "17,2,8,1\n"), 1U);
  EXPECT_EQ(rows(head + "12,2,8,1\n"), 2U) << "a node need not be full";
  EXPECT_EQ(rows("gpus,nodes,step_ms\n16,2,1\n2,4,1\n"), 1U);
}

TEST(ScalingTable, rows_that_cannot_be_read_are_counted) {
  Diagnostics diagnostics;
  const ScalingTable table = formats::read_scaling_table(
      "runs.csv",
      "gpus,samples_per_s,note\n8,100,ok\n16,n/a,\n0,100,\n-4,100,\n1.5,100,\n,100,\n32,,\n64,inf,\n128,500,\n",
      diagnostics);
  EXPECT_EQ(table.runs.size(), 2U);
  EXPECT_EQ(diagnostics.count_of("measured.bad_row"), 7U);
  EXPECT_EQ(diagnostics.count_of("measured.unused_column"), 1U);
  EXPECT_EQ(table.runs[1].line, 10U);
}

TEST(ScalingTable, what_is_no_table_says_what_is_missing) {
  EXPECT_THAT(error("samples_per_s\n100\n"), HasSubstr("expected a column of sizes"));
  EXPECT_THAT(error("gpus,colour\n8,red\n"), HasSubstr("expected a column of values"));
  EXPECT_THAT(error("gpus,samples_per_s\n"), HasSubstr("no row"));
  for (const char* nothing : {"", "\n\n", "# nothing\n"})
    EXPECT_THAT(error(nothing), HasSubstr("runs.csv: the file is empty"));
}

TEST(Scaling, figures_are_short) {
  EXPECT_EQ(figure(1280), "1,280");
  EXPECT_EQ(figure(1.4545), "1.45");
  EXPECT_EQ(figure(999.7), "1,000");
  EXPECT_EQ(figure(110), "110");
}

}  // namespace
}  // namespace ddx::analyzers
