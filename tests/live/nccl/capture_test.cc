// NCCL's calls, as libddx_trace.so captures them, against the ledger of the test double that they were made to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>

#include "live/preload/nccl_abi.h"
#include "tests/live/nccl/agreement.h"
#include "tests/live/nccl/job.h"

namespace ddx::nccl_test {
namespace {

using ::testing::IsEmpty;

constexpr const char* kVersions[] = {"2.23", "2.24", "2.26", "2.27", "2.28", "2.29", "2.30"};

JobSpec spec_of(const std::string& scenario, int size = 2) {
  JobSpec spec;
  spec.command = {DDX_NCCL_LINKED_DRIVER, scenario};
  spec.size = size;
  spec.environment["LD_LIBRARY_PATH"] = DDX_NCCL_DOUBLE_DIR;
  return spec;
}

// Linked with a library of its own, loaded as Python loads extensions.
JobSpec spec_of_way(const std::string& scenario, const std::vector<std::string>& way) {
  JobSpec spec = spec_of(scenario);
  spec.command = {DDX_NCCL_DRIVER, scenario};
  spec.command.insert(spec.command.end(), way.begin(), way.end());
  return spec;
}

void expect_status(const JobResult& job, int status) {
  for (const RankResult& rank : job.ranks) {
    EXPECT_TRUE(WIFEXITED(rank.status)) << rank.status << " " << rank.err;
    EXPECT_EQ(WEXITSTATUS(rank.status), status) << rank.err;
  }
}

std::vector<capture::Event> events_of(const CaptureFile& file, capture::EventCode code) {
  std::vector<capture::Event> events;
  std::copy_if(file.events.begin(), file.events.end(), std::back_inserter(events),
               [&](const capture::Event& event) { return event.code == static_cast<std::uint8_t>(code); });
  return events;
}

class EveryVersion : public ::testing::TestWithParam<const char*> {
 protected:
  int minor() const { return std::stoi(std::string(GetParam()).substr(2)); }
};

TEST_P(EveryVersion, InterposerAgreesWithTheLedger) {
  JobSpec spec = spec_of("all", 4);
  spec.environment["DDX_DOUBLE_NCCL_VERSION"] = GetParam();
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
  EXPECT_THAT(time_differences(job, false), IsEmpty());
  for (const RankResult& rank : job.ranks) {
    const auto loaded = events_of(*rank.capture, capture::EventCode::layer_loaded);
    ASSERT_EQ(loaded.size(), 1U);
    EXPECT_EQ(rank.capture->text(loaded[0].text), std::string("NCCL ") + GetParam() + ".3");
    EXPECT_EQ(rank.capture->header.layers, 1U << static_cast<int>(capture::Layer::nccl_call));
  }
}

TEST_P(EveryVersion, PluginAddsTimesAndNoCalls) {
  JobSpec spec = spec_of("all", 3);
  spec.environment["DDX_DOUBLE_NCCL_VERSION"] = GetParam();
  spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
  spec.environment["DDX_NCCL_TIMING"] = "gpu";
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
  EXPECT_THAT(time_differences(job, minor() >= 27), IsEmpty());
  for (const RankResult& rank : job.ranks) {
    EXPECT_EQ(rank.capture->header.layers, 1U << static_cast<int>(capture::Layer::nccl_call));
  }
}

TEST_P(EveryVersion, PluginAloneSeesStaticNccl) {
  JobSpec spec = spec_of("all", 3);
  spec.command = {DDX_NCCL_STATIC_DRIVER, "all"};
  spec.environment["LD_PRELOAD"] = "";
  spec.environment["DDX_DOUBLE_NCCL_VERSION"] = GetParam();
  spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(profiler_differences(job, minor()), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Nccl, EveryVersion, ::testing::ValuesIn(kVersions),
                         [](const auto& version) { return "v2_" + std::string(version.param).substr(2); });

TEST(NcclCapture, LoadedWithLocalScope) {
  const JobResult job = run_job(spec_of_way("all", {"local", DDX_NCCL_LIBRARY}));
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
}

TEST(NcclCapture, DlopenedNcclIsNotSeenByThePreloadAlone) {
  const JobResult job = run_job(spec_of_way("all", {"dlopen", DDX_NCCL_DOUBLE_DIR "/libnccl.so.2"}));
  expect_status(job, 7);
  EXPECT_THAT(job.trace_files, IsEmpty());
}

TEST(NcclCapture, ThePluginSeesDlopenedNccl) {
  JobSpec spec = spec_of_way("all", {"dlopen", DDX_NCCL_DOUBLE_DIR "/libnccl.so.2"});
  spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(profiler_differences(job, 28), IsEmpty());
}

#ifndef DDX_SANITIZED  // AddressSanitizer looks its functions up before the hook can.
TEST(NcclCapture, TheDlsymHookSeesDlopenedNccl) {
  JobSpec spec = spec_of_way("all", {"dlopen", DDX_NCCL_DOUBLE_DIR "/libnccl.so.2"});
  spec.environment["LD_PRELOAD"] = DDX_TRACE_LIBRARY ":" DDX_BINARY_DIR "/libddx_dlsym.so";
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
}
#endif

// What it hears alone it hears through ours, and ours hears what it needs besides.
TEST(NcclCapture, TheUsersOwnPluginHearsWhatItHearsAlone) {
  struct Pair {
    const char* version;
    const char* plugin;
  };
  for (const Pair& pair : {Pair{"2.27", DDX_NCCL_USER_PLUGIN_V4}, Pair{"2.29", DDX_NCCL_USER_PLUGIN_V6},
                           Pair{"2.29", DDX_NCCL_USER_PLUGIN_V4}}) {
    JobSpec spec = spec_of("all");
    spec.environment["DDX_DOUBLE_NCCL_VERSION"] = pair.version;
    spec.environment["NCCL_PROFILER_PLUGIN"] = pair.plugin;
    spec.with_ddx = false;
    const JobResult alone = run_job(spec);
    spec.with_ddx = true;
    spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
    spec.environment["DDX_USER_PROFILER_PLUGIN"] = pair.plugin;
    spec.environment["DDX_NCCL_TIMING"] = "gpu";
    const JobResult chained = run_job(spec);
    expect_status(chained, 7);
    EXPECT_THAT(interposer_differences(chained), IsEmpty());
    EXPECT_THAT(time_differences(chained, true), IsEmpty());
    for (std::size_t rank = 0; rank < alone.ranks.size(); ++rank) {
      EXPECT_GT(alone.ranks[rank].plugin.size(), 1000U);
      EXPECT_EQ(alone.ranks[rank].plugin, chained.ranks[rank].plugin) << pair.version << " " << pair.plugin;
    }
  }
}

#ifndef DDX_SANITIZED
// The double gives an error for a communicator of another copy, and calls of both are to be seen.
TEST(NcclCapture, TwoCopiesOfNcclEachGetTheirOwn) {
  JobSpec spec = spec_of_way("all", {"two", DDX_NCCL_LIBRARY, DDX_NCCL_OLD_DOUBLE_DIR "/libnccl.so.2"});
  spec.environment["LD_PRELOAD"] = DDX_TRACE_LIBRARY ":" DDX_BINARY_DIR "/libddx_dlsym.so";
  spec.environment["DDX_DOUBLE_NCCL_VERSION"] = "2.26";
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
  for (const RankResult& rank : job.ranks) {
    EXPECT_EQ(events_of(*rank.capture, capture::EventCode::layer_loaded).size(), 2U);
  }
}
#endif

#ifndef DDX_SANITIZED  // It forbids RTLD_DEEPBIND.
TEST(NcclCapture, DeepBoundNcclIsSeenByTheAuditLibraryOnly) {
  JobSpec spec = spec_of_way("all", {"deepbind", DDX_NCCL_LIBRARY});
  JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(job.trace_files, IsEmpty());
  spec.environment["LD_AUDIT"] = DDX_BINARY_DIR "/libddx_audit.so";
  job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
}
#endif

#ifndef DDX_SANITIZED  // In such a program the audit library sees nothing; why is not known.
TEST(NcclCapture, TheAuditLibrarySeesDlopenedNccl) {
  JobSpec spec = spec_of_way("all", {"dlopen", DDX_NCCL_DOUBLE_DIR "/libnccl.so.2"});
  spec.environment["LD_AUDIT"] = DDX_BINARY_DIR "/libddx_audit.so";
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
}
#endif

TEST(NcclCapture, StaleHandlesOfThePluginHarmNothing) {
  JobSpec spec = spec_of("all");
  spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
  spec.environment["DDX_NCCL_TIMING"] = "gpu";
  spec.environment["DDX_DOUBLE_STALE"] = "1";
  const JobResult job = run_job(spec);
  expect_status(job, 7);
  EXPECT_THAT(interposer_differences(job), IsEmpty());
}

TEST(NcclCapture, TheJobIsAsItIsWithout) {
  JobSpec spec = spec_of("all");
  spec.with_ddx = false;
  const JobResult plain = run_job(spec);
  spec.with_ddx = true;
  const JobResult captured = run_job(spec);
  ASSERT_THAT(plain.trace_files, IsEmpty());
  ASSERT_EQ(captured.trace_files.size(), 2U);
  for (std::size_t rank = 0; rank < plain.ranks.size(); ++rank) {
    EXPECT_EQ(plain.ranks[rank].status, captured.ranks[rank].status);
    EXPECT_EQ(plain.ranks[rank].out, captured.ranks[rank].out);
    EXPECT_EQ(plain.ranks[rank].err, captured.ranks[rank].err);
  }
}

TEST(NcclCapture, NoFileWhereNothingWasCalled) {
  const JobResult job = run_job(spec_of("nothing"));
  expect_status(job, 3);
  EXPECT_THAT(job.trace_files, IsEmpty());
}

TEST(NcclCapture, NothingIsRecordedWithoutAFolder) {
  for (const char* folder : {"", "/no/such/folder"}) {
    JobSpec spec = spec_of("all");
    spec.environment["DDX_TRACE_DIR"] = folder;
    spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
    const JobResult job = run_job(spec);
    expect_status(job, 7);
    EXPECT_THAT(job.trace_files, IsEmpty());
  }
}

TEST(NcclCapture, AsynchronousErrorIsToldOnceAndTheAbortAfterIt) {
  JobSpec spec = spec_of("lost_peer");
  spec.environment["NCCL_PROFILER_PLUGIN"] = DDX_TRACE_LIBRARY;
  spec.environment["DDX_NCCL_TIMING"] = "gpu";
  const JobResult job = run_job(spec);
  expect_status(job, 0);
  const CaptureFile& file = *job.ranks[0].capture;
  const auto errors = events_of(file, capture::EventCode::async_error);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].value, nccl::kRemoteError);
  EXPECT_EQ(file.text(errors[0].text), "remote process exited or there was a network error");
  const auto aborts = events_of(file, capture::EventCode::group_aborted);
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(aborts[0].group, errors[0].group);
  EXPECT_GE(aborts[0].time, errors[0].time);
  // The first all-reduce ended, the second was waiting for its peer.
  std::vector<capture::Call> reduces;
  for (const auto& record : file.calls) {
    if (record.call.kind == static_cast<std::uint8_t>(capture::CallKind::all_reduce)) reduces.push_back(record.call);
  }
  ASSERT_EQ(reduces.size(), 2U);
  EXPECT_NE(reduces[0].end, 0);
  EXPECT_NE(reduces[1].start, 0);
  EXPECT_EQ(reduces[1].end, 0);
  EXPECT_EQ(reduces[1].flags & capture::kNoEnd, 0);
}

TEST(NcclCapture, CommunicatorCarriesTheProcessGroupThatMadeIt) {
  const JobResult job = run_job(spec_of("framework"));
  expect_status(job, 0);
  for (const RankResult& rank : job.ranks) {
    const CaptureFile& file = *rank.capture;
    const CaptureFile::CallRecord* torch_call = nullptr;
    int inner = 0;
    for (const auto& record : file.calls) {
      const auto layer = static_cast<capture::Layer>(record.call.flags & capture::kLayerMask);
      if (layer == capture::Layer::torch) torch_call = &record;
      if (layer != capture::Layer::nccl_call || record.call.kind == 0) continue;
      ASSERT_NE(torch_call, nullptr);
      ++inner;
      EXPECT_EQ(record.id - record.call.outer_back, torch_call->id);
      const capture::Group& group = file.groups.at(record.call.group);
      EXPECT_EQ(group.outer, torch_call->call.group);
      EXPECT_EQ(file.text(file.groups.at(group.outer).name), "default_pg");
    }
    EXPECT_EQ(inner, 2);  // the communicator's making, and the all-reduce
  }
}

TEST(NcclCapture, AFunctionThatAnOlderNcclLacksIsAnErrorAndNoCrash) {
  JobSpec spec = spec_of("missing");
  spec.environment["LD_LIBRARY_PATH"] = DDX_NCCL_OLD_DOUBLE_DIR;
  spec.environment["DDX_DOUBLE_NCCL_VERSION"] = "2.24";
  const JobResult job = run_job(spec);
  expect_status(job, 0);
  for (const RankResult& rank : job.ranks)
    EXPECT_EQ(events_of(*rank.capture, capture::EventCode::call_failed).size(), 1U);
}

TEST(NcclCapture, ThreadsLoseAndMixNothing) {
  const JobResult job = run_job(spec_of("threads"));
  expect_status(job, 0);
  EXPECT_THAT(thread_differences(job), IsEmpty());
}

TEST(NcclCapture, AForkedWorkerHasAFileOfItsOwnFromItsFirstCallOn) {
  const JobResult job = run_job(spec_of("forking", 2));
  expect_status(job, 0);
  EXPECT_EQ(job.trace_files.size(), 4U);  // of each rank and of its worker that calls
  EXPECT_THAT(interposer_differences(job), IsEmpty());
  ASSERT_EQ(job.others.size(), 2U);
  for (const CaptureFile& file : job.others) {
    std::vector<CaptureFile::CallRecord> calls;
    std::copy_if(file.calls.begin(), file.calls.end(), std::back_inserter(calls),
                 [](const auto& record) { return record.call.kind != 0; });
    ASSERT_EQ(calls.size(), 2U);
    for (const auto& record : calls) {
      ASSERT_TRUE(file.groups.contains(record.call.group));
      EXPECT_EQ(file.groups.at(record.call.group).size, 1);
      ASSERT_TRUE(file.frames.contains(record.call.site));
      EXPECT_FALSE(file.text(file.frames.at(record.call.site).file).empty());
    }
    EXPECT_EQ(calls[1].call.count, 11U);
  }
}

}  // namespace
}  // namespace ddx::nccl_test
