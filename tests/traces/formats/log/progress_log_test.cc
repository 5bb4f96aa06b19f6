#include "traces/formats/progress_log.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

TEST(ProgressLog, IdleNotices) {
  const auto block = only<IdleNotice>(
      "INFO 10:10:00 [shm_broadcast.py:681] No available shared memory broadcast block found in 600 seconds. This "
      "typically happens when some processes are hanging");
  EXPECT_EQ(block.interval, 600 * kSecond);
  EXPECT_EQ(
      only<IdleNotice>("WARNING 11-29 10:10:00 shm_broadcast.py:404] No available block found in 60 second.").interval,
      60 * kSecond);
  EXPECT_EQ(only<IdleNotice>("INFO 10:00:00 [core.py] request queue empty").what, "queue empty");
  EXPECT_EQ(only<IdleNotice>("INFO 11-29 10:00:00 [loggers.py:116] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
                             "Running: 0 reqs, Waiting: 0 reqs")
                .what,
            "no requests");
}

TEST(ProgressLog, LinesThatShowWork) {
  for (const char* line :
       {"INFO 10:21:07 [core.py] request 118 finished in 2.1 s", "step 120/1000", "Step: 120, loss 2.31",
        "global_step=40", " iteration      100/    1000 | consumed samples: 1536 | number of nan iterations:   0 |",
        "Epoch 3 done", "Epoch: [0][415/1736]\t Loss 0.5844", "train loss: 0.31",
        " 45%|####      | 450/1000 [00:10<00:12, 44.9it/s]"}) {
    EXPECT_EQ(facts_of<ProgressNotice>(read_log_text(line)).size(), 1U) << line;
  }
  for (const char* line : {"stepping back", "finished loading", "# nThread 1 nGpus 8 minBytes 8 step: 2(factor)",
                           "loss function is MSE", "the next epoch will tell"}) {
    EXPECT_TRUE(facts_of<ProgressNotice>(read_log_text(line)).empty()) << line;
  }
}

TEST(ProgressLog, OfALongRunTheFirstAndTheLastAreKept) {
  std::string text;
  for (int step = 1; step <= 1000; ++step) text += "10:00:00 step " + std::to_string(step) + "/1000\n";
  text += "[rank0]: ProcessGroupNCCL's watchdog got stuck for 480 seconds\nstep 1001\n";
  const auto events = events_of<ProgressNotice>(read_log_text(text));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].line, 1U);
  EXPECT_EQ(events[1].line, 1000U);
  EXPECT_EQ(std::get<ProgressNotice>(events[1].fact).what, "step 1000/1000");
  EXPECT_EQ(events[2].line, 1002U);
}

TEST(ProgressLog, BadValues) {
  for (const char* line :
       {"step 12 loss: nan", "loss is NaN, stopping", "grad_norm=nan lr=0.1", "Found NaN in gradients of layer 3",
        "NaN detected in input tensor", "iteration 7/ 10 | number of nan iterations:   2 |",
        "NaNCheck.cu:12: checkForNaN: Assertion `!isnan(x)` failed."}) {
    EXPECT_EQ(facts_of<NanNotice>(read_log_text(line)).size(), 1U) << line;
  }
  for (const char* line :
       {"check_for_nan_in_loss: True", "using nan_to_num", "loss: 0.1 banana", "number of nan iterations:   0"}) {
    EXPECT_TRUE(facts_of<NanNotice>(read_log_text(line)).empty()) << line;
  }
}

}  // namespace
}  // namespace ddx::formats
