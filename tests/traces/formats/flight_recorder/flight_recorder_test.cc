#include "traces/formats/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/formats/flight_recorder/dump_writer.h"
#include "tests/traces/formats/flight_recorder/reading.h"

namespace ddx::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Evidence read_entries(List entries, std::string_view ranks = "[0, 1]") {
  return read_dump(torch_pickle(dict(dump(ranks, std::move(entries)))));
}

const Signature& call_of(const Evidence& evidence, std::size_t row) {
  const Trace& trace = evidence.trace;
  return trace.signature(trace.program(trace.ranks.front()).signature(row));
}

// What PyTorch 2.13 wrote itself in a job of two gloo ranks (data/make_gloo_dumps.py says which calls).
TEST(RealDump, GlooPickle) {
  const Evidence evidence = read_dump(data_file("gloo_rank_0"), "gloo_rank_0");
  EXPECT_THAT(row_texts(evidence),
              ElementsAre("all_reduce gloo:all_reduce pg=0 seq=1 group=- 12>12 f32>f32 peer=- completed retired",
                          "all_reduce gloo:all_reduce pg=0 seq=2 group=- 12>12 f32>f32 peer=- completed retired",
                          "all_gather gloo:all_gather pg=0 seq=3 group=- 12>24 f32>f32 peer=- completed retired",
                          "broadcast gloo:broadcast pg=1 seq=1 group=- 5>5 i64>i64 peer=- completed retired",
                          "all_gather gloo:all_gather pg=0 seq=4 group=- 3>6 f32>f32 peer=- completed retired",
                          "all_to_all gloo:all_to_all pg=1 seq=2 group=- 4>4 f32>f32 peer=- completed retired",
                          "all_reduce gloo:all_reduce pg=0 seq=5 group=- 6>6 f32>f32 peer=- completed retired",
                          "barrier gloo:barrier pg=0 seq=6 group=- ->- unknown>unknown peer=- completed retired",
                          "gather gloo:gather pg=0 seq=7 group=- 12>24 f32>f32 peer=- completed retired",
                          "all_reduce gloo:all_reduce pg=0 seq=8 group=- 9>9 f32>f32 peer=- scheduled"));
  const RankRecord& record = evidence.trace.ranks.front();
  EXPECT_EQ(record.rank, RankId(0));
  EXPECT_EQ(record.backend, "gloo");
  EXPECT_FALSE(record.stream_ordered);
  EXPECT_TRUE(record.snapshot);
  EXPECT_EQ(record.timing, false);
  EXPECT_FALSE(record.head_lost);
  EXPECT_FALSE(record.tail_lost);
  EXPECT_TRUE(evidence.diagnostics.empty());
  // The recorder of gloo lists no members, and 9 counts the send as well.
  EXPECT_THAT(group_texts(evidence),
              ElementsAre("0 default_pg [] position - progress 9/0/8", "1 pair [] position - progress 2/0/2"));
  const Trace& trace = evidence.trace;
  const CallSite& site = trace.call_site(*trace.program(record).call_site(0));
  EXPECT_EQ(trace.text(site.frames[0].function), "all_reduce");
  EXPECT_EQ(site.frames[0].line, 3245U);
  EXPECT_THAT(std::string(trace.text(site.frames[2].file)), HasSubstr("make_dumps.py"));
}

TEST(RealDump, JsonSaysTheSameButStacks) {
  for (const char* name : {"gloo_rank_0", "gloo_rank_1", "nccl_rank_0", "nccl_rank_1", "nccl_rank_2"}) {
    const Evidence pickle = read_dump(data_file(name), name);
    const Evidence text = read_dump(data_file(std::string(name) + ".json"), std::string(name) + ".json");
    EXPECT_EQ(row_texts(pickle), row_texts(text)) << name;
    EXPECT_EQ(group_texts(pickle), group_texts(text)) << name;
    const RankRecord &a = pickle.trace.ranks.front(), &b = text.trace.ranks.front();
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.head_lost, b.head_lost);
    EXPECT_EQ(a.timing, b.timing);
    EXPECT_EQ(pickle.trace.world_size, text.trace.world_size);
    const Program &p = pickle.trace.program(a), &q = text.trace.program(b);
    for (std::size_t row = 0; row < p.size(); ++row) {
      EXPECT_EQ(p.issue(row), q.issue(row));
      EXPECT_EQ(p.start(row), q.start(row));
      EXPECT_EQ(p.end(row), q.end(row));
    }
  }
}

// A dump that Python loaded and saved again, and JSON that went through an editor.
TEST(RealDump, SavedAgain) {
  const Evidence original = read_dump(data_file("nccl_rank_1"), "rank_1");
  EXPECT_EQ(row_texts(original).size(), 3U);
  for (const char* name :
       {"nccl_protocol_3_rank_1", "nccl_protocol_4_rank_1", "nccl_protocol_5_rank_1", "nccl_pretty_rank_1.json"}) {
    const Evidence again = read_dump(data_file(name), name);
    EXPECT_EQ(row_texts(again), row_texts(original)) << name;
    EXPECT_EQ(group_texts(again), group_texts(original)) << name;
    EXPECT_TRUE(again.diagnostics.empty()) << name;
  }
}

TEST(FlightRecorder, AllFormsAgree) {
  const Value frame = dict({{"name", "step"}, {"filename", "train.py"}, {"line", 14}});
  List entries;
  for (int i = 0; i < 2501; ++i) {  // Python's pickler starts a new batch every 1,000 items and ends on a single one
    entries.push_back(dict(entry(i, i + 1, "nccl:all_reduce", {{"frames", list({frame, frame})}})));
  }
  const Value whole = dict(dump("[0, 1]", entries));
  const auto expected = row_texts(read_dump(torch_pickle(whole)));
  ASSERT_EQ(expected.size(), 2501U);
  EXPECT_EQ(expected[2500], "all_reduce nccl:all_reduce pg=0 seq=2501 group=- 32>32 f32>f32 peer=- scheduled");
  for (const std::string& bytes : {python_pickle(whole, 2), python_pickle(whole, 4), json(whole)}) {
    const Evidence evidence = read_dump(bytes);
    EXPECT_EQ(row_texts(evidence), expected);
    EXPECT_EQ(evidence.trace.signatures().size(), 1U);
    EXPECT_EQ(evidence.trace.call_sites().size(), 1U);
  }
}

TEST(FlightRecorder, OneEntryAndNone) {
  const Value one = dict(dump("[0, 1]", {dict(entry(0, 1, "nccl:broadcast"))}));
  const Value none = dict(dump("[0, 1]", {}));
  for (int protocol : {2, 4}) {
    EXPECT_EQ(row_texts(read_dump(python_pickle(one, protocol))).size(), 1U);
    EXPECT_EQ(row_texts(read_dump(python_pickle(none, protocol))).size(), 0U);
  }
  EXPECT_EQ(row_texts(read_dump(torch_pickle(one))).size(), 1U);
  const Evidence empty = read_dump(torch_pickle(none));
  EXPECT_EQ(row_texts(empty).size(), 0U);
  EXPECT_EQ(empty.trace.ranks.front().timing, std::nullopt);
  EXPECT_EQ(empty.trace.world_size, 2U);
  // JSON leaves the key out.
  EXPECT_EQ(read_dump(R"({"version":"2.10","pg_config":{},"pg_status":{}})").trace.ranks.size(), 1U);
}

TEST(FlightRecorder, SortedKeysPutEntriesBeforeGroups) {
  const Evidence evidence = read_dump(
      R"({"entries":[{"process_group":["7","tp"],"pg_id":3,"collective_seq_id":5,"profiling_name":"nccl:all_reduce"}],
          "pg_config":{"7":{"desc":"tp","name":"7","ranks":"[4, 0]"}},
          "pg_status":{"3":{"last_completed_collective":"-1","last_enqueued_collective":"5"}},"version":"2.10"})");
  EXPECT_THAT(row_texts(evidence),
              ElementsAre("all_reduce nccl:all_reduce pg=7 seq=5 group=- ->- unknown>unknown peer=- unknown"));
  EXPECT_THAT(group_texts(evidence), ElementsAre("7 tp [4,0] position 1 progress 5/-/0"));
  EXPECT_EQ(evidence.trace.world_size, std::nullopt) << "two ranks are in tp; how many there are is not said";
}

TEST(FlightRecorder, OnlyTheDefaultGroupSaysHowLargeTheJobIs) {
  const auto world_of = [](const std::string& config) {
    return read_dump(R"({"entries":[{"collective_seq_id":5}],"pg_config":{)" + config + "}}").trace.world_size;
  };
  const std::string tp = R"("tp0":{"desc":"tp","name":"tp0","ranks":"[0, 1, 2, 3]"})";
  EXPECT_EQ(world_of(tp), std::nullopt);
  EXPECT_EQ(world_of(tp + R"(,"7":{"desc":"default_pg","name":"7","ranks":"[0, 1, 2, 3, 4, 5]"})"), 6U);
  EXPECT_EQ(world_of(tp + R"(,"0":{"desc":"undefined","name":"0","ranks":"[0, 1]"})"), 2U);
  EXPECT_EQ(world_of(tp + R"(,"0":{"desc":"default_pg","name":"0","ranks":""})"), std::nullopt);
}

TEST(FlightRecorder, PeersArePositionsInTheGroup) {
  const Evidence evidence = read_entries({dict(entry(0, 0, "nccl:send 0->1", {{"p2p_seq_id", 1}, {"is_p2p", true}})),
                                          dict(entry(1, 0, "nccl:recv 0<-3", {{"p2p_seq_id", 2}, {"is_p2p", true}})),
                                          dict(entry(2, 0, "xccl:send", {{"p2p_seq_id", 3}, {"is_p2p", true}}))});
  EXPECT_THAT(row_texts(evidence), ElementsAre("send nccl:send pg=0 seq=1 group=- 32>32 f32>f32 peer=1 scheduled",
                                               "recv nccl:recv pg=0 seq=2 group=- 32>32 f32>f32 peer=3 scheduled",
                                               "send xccl:send pg=0 seq=3 group=- 32>32 f32>f32 peer=- scheduled"));
}

TEST(FlightRecorder, BatchesShareASequenceNumber) {
  const auto p2p = [](int id, int seq, const char* name) {
    return dict(entry(id, 4, name, {{"p2p_seq_id", seq}, {"is_p2p", true}}));
  };
  const Value none = list({});
  const Evidence evidence = read_entries(
      {dict(entry(0, 3, "nccl:all_reduce")),  // number 3 of the collectives is not number 3 of the batch below
       p2p(1, 3, "nccl:send 0->1"), p2p(2, 3, "nccl:recv 0<-1"), p2p(3, 3, "nccl:coalesced"),
       p2p(4, 4, "nccl:send 0->1"),  // alone
       dict(entry(5, 4, "nccl:_all_gather_base")), dict(entry(6, 4, "nccl:_all_gather_base")),
       dict(entry(7, 4, "nccl:ALLGATHER_coalesced", {{"input_sizes", none}, {"output_sizes", none}})),
       dict(entry(8, 5, "nccl:allreduce_coalesced", {{"input_sizes", list({list({2}), list({3})})}}))});
  std::vector<std::string> heads;
  for (const std::string& text : row_texts(evidence)) heads.push_back(text.substr(0, text.find('>')));
  EXPECT_THAT(
      heads,
      ElementsAre("all_reduce nccl:all_reduce pg=0 seq=3 group=- 32", "send nccl:send pg=0 seq=3 group=0 32",
                  "recv nccl:recv pg=0 seq=3 group=0 32", "coalesced nccl:coalesced pg=0 seq=3 group=0 32",
                  "send nccl:send pg=0 seq=4 group=- 32", "all_gather nccl:_all_gather_base pg=0 seq=4 group=1 32",
                  "all_gather nccl:_all_gather_base pg=0 seq=4 group=1 32",
                  "coalesced nccl:ALLGATHER_coalesced pg=0 seq=4 group=1 -",
                  "all_reduce nccl:allreduce_coalesced pg=0 seq=5 group=- 5"));
}

TEST(FlightRecorder, NamesOfOperations) {
  const std::vector<std::pair<const char*, OpKind>> cases{
      {"nccl:all_reduce", OpKind::all_reduce},
      {"allreduce", OpKind::all_reduce},
      {"nccl:all_reduce_barrier", OpKind::barrier},
      {"gloo:barrier", OpKind::barrier},
      {"nccl:_all_gather_base", OpKind::all_gather},
      {"nccl:all_gather_into_tensor_coalesced", OpKind::all_gather},
      {"nccl:_reduce_scatter_base", OpKind::reduce_scatter},
      {"nccl:reduce_scatter_tensor_coalesced", OpKind::reduce_scatter},
      {"nccl:REDUCE_SCATTER_coalesced", OpKind::reduce_scatter},
      {"ncclx:all_to_all_v_single", OpKind::all_to_all},
      {"nccl:all_to_allv", OpKind::all_to_all},
      {"nccl:alltoall_base", OpKind::all_to_all},
      {"nccl:_broadcast_oop", OpKind::broadcast},
      {"nccl:_reduce_oop", OpKind::reduce},
      {"nccl:gather", OpKind::gather},
      {"nccl:scatter", OpKind::scatter},
      {"nccl:new_window", OpKind::unknown},
  };
  List entries;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    entries.push_back(dict(entry(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1, cases[i].first)));
  }
  const Evidence evidence = read_entries(entries);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(call_of(evidence, i).kind, cases[i].second) << cases[i].first;
    EXPECT_EQ(evidence.trace.text(call_of(evidence, i).name), cases[i].first);
  }
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.unknown_op"), 1U);
}

TEST(FlightRecorder, BackendDecidesWhetherCallsReturnAtOnce) {
  const auto backend_of = [](const char* name) { return read_entries({dict(entry(0, 1, name))}).trace.ranks.front(); };
  EXPECT_TRUE(backend_of("nccl:all_reduce").stream_ordered);
  EXPECT_TRUE(backend_of("xccl:all_reduce").stream_ordered);
  EXPECT_FALSE(backend_of("gloo:all_reduce").stream_ordered);
  EXPECT_FALSE(backend_of("mpi:all_reduce").stream_ordered);
  EXPECT_EQ(backend_of("newccl:all_reduce").backend, "newccl");
  EXPECT_EQ(backend_of("all_reduce").backend, "");
}

TEST(FlightRecorder, CountsAndTypesAndSplits) {
  const Evidence evidence =
      read_entries({dict(entry(0, 1, "nccl:all_to_all",
                               {{"input_sizes", list({list({2, 3}), list({})})},  // a scalar counts one element
                                {"input_dtypes", list({"BFloat16", "BFloat16"})},
                                {"output_sizes", list({list({0, 9})})},
                                {"output_dtypes", list({"Float8_e4m3fn"})},
                                {"input_split_sizes", list({4, 3})},
                                {"output_split_sizes", list({0, 0})}})),
                    dict(entry(1, 2, "nccl:barrier", {{"input_sizes", list({})}, {"output_sizes", list({})}}))});
  const Signature& call = call_of(evidence, 0);
  EXPECT_EQ(call.count_in, 7U);
  EXPECT_EQ(call.count_out, 0U);
  EXPECT_EQ(call.type_in, DataType::bf16);
  EXPECT_EQ(call.type_out, DataType::f8e4m3);
  EXPECT_THAT(call.split_in, ElementsAre(4, 3));
  EXPECT_THAT(call.split_out, ElementsAre(0, 0));
  EXPECT_THAT(call.shape_in, ElementsAre(ElementsAre(2, 3), ElementsAre()));
  EXPECT_EQ(call_of(evidence, 1).count_in, std::nullopt);
}

TEST(FlightRecorder, CountsThatCannotBeAreAbsent) {
  const std::int64_t big = std::int64_t{1} << 40;
  const Evidence evidence = read_entries({dict(entry(
      0, 1, "nccl:all_reduce", {{"input_sizes", list({list({big, big})})}, {"output_sizes", list({list({-1})})}}))});
  EXPECT_EQ(call_of(evidence, 0).count_in, std::nullopt);
  EXPECT_EQ(call_of(evidence, 0).count_out, std::nullopt);
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.count_overflow"), 2U);
}

TEST(FlightRecorder, TimesAndStates) {
  const Evidence evidence = read_entries({dict(entry(0, 1, "nccl:all_reduce",
                                                     {{"state", "completed"},
                                                      {"time_created_ns", 100},
                                                      {"time_discovered_started_ns", 200},
                                                      {"time_discovered_completed_ns", 300},
                                                      {"duration_ms", 0.5}})),
                                          dict(entry(1, 2, "nccl:all_reduce", {{"state", "started"}})),
                                          dict(entry(2, 3, "nccl:all_reduce", {{"retired", true}}))});
  const Program& program = evidence.trace.programs.front();
  EXPECT_EQ(program.issue(0), 100);
  EXPECT_EQ(program.start(0), 200);
  EXPECT_EQ(program.end(0), 300);
  EXPECT_EQ(program.state(1), OpState::started);
  EXPECT_EQ(program.start(1), std::nullopt);
  // Retired without completion: it ran into its time-out.
  EXPECT_EQ(program.state(2), OpState::scheduled);
  EXPECT_TRUE(program.retired(2));
  EXPECT_EQ(evidence.trace.ranks.front().timing, true);
}

TEST(FlightRecorder, RingThatOverran) {
  EXPECT_TRUE(read_entries({dict(entry(17, 3, "nccl:all_reduce"))}).trace.ranks.front().head_lost);
  EXPECT_FALSE(read_entries({dict(entry(0, 1, "nccl:all_reduce"))}).trace.ranks.front().head_lost);
}

// The limits of successive collectives, in milliseconds, and what the record holds of them.
TEST(FlightRecorder, TimeOuts) {
  struct Case {
    std::vector<Value> limits;
    std::optional<Nanos> timeout;
    std::uint32_t since;
  };
  const Case cases[] = {
      {{600'000, 600'000, 600'000}, 600'000'000'000, 1},
      {{600'000, 600'000, 30'000}, 30'000'000'000, 3},
      {{600'000, 30'000, 30'000}, 30'000'000'000, 2},
      {{600'000, Value(), 600'000}, 600'000'000'000, 3},
      {{600'000, 600'000, 0}, std::nullopt, 0},
      {{600'000, std::int64_t{9'223'372'036'854'775'807}}, std::nullopt, 0},  // no number of nanoseconds
      {{"600000"}, std::nullopt, 0},
  };
  for (const Case& c : cases) {
    List entries;
    for (std::size_t i = 0; i < c.limits.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      entries.push_back(dict(entry(number, number + 1, "nccl:all_reduce", {{"timeout_ms", c.limits[i]}})));
    }
    for (const std::string& bytes :
         {json(dict(dump("[0, 1]", entries))), torch_pickle(dict(dump("[0, 1]", entries)))}) {
      const Evidence evidence = read_dump(bytes);
      const std::optional<CallLimit>& limit = evidence.trace.ranks.front().progress.front().limit;
      ASSERT_EQ(limit.has_value(), c.timeout.has_value());
      if (!limit) continue;
      EXPECT_EQ(limit->timeout, *c.timeout);
      EXPECT_EQ(limit->since, c.since);
    }
  }
}

TEST(FlightRecorder, MemberListsInAllSpellings) {
  for (const char* ranks : {"[0, 1, 2]", "[0,1,2]", "0,1,2", " [ 0 , 1 , 2 ] "}) {
    EXPECT_THAT(group_texts(read_entries({}, ranks)), ElementsAre("0 default_pg [0,1,2] position 0 progress 7/0/6"))
        << ranks;
  }
  Dict listed = dump("", {});
  set(listed, "pg_config", dict({{"0", dict({{"name", "0"}, {"desc", "default_pg"}, {"ranks", list({2, 0})}})}}));
  for (const std::string& bytes : {torch_pickle(dict(listed)), json(dict(listed))}) {
    EXPECT_THAT(group_texts(read_dump(bytes)), ElementsAre("0 default_pg [2,0] position 1 progress 7/0/6"));
  }
  for (const char* ranks : {"[0, 1", "0, x", "[-1]", "[99999999999]", "[1 2]"}) {
    const Evidence evidence = read_entries({}, ranks);
    EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.wrong_type"), 1U) << ranks;
    EXPECT_TRUE(evidence.trace.communicators().front().members.empty()) << ranks;
  }
}

TEST(FlightRecorder, StatusBelongsToTheGroupThatEntriesNameByIt) {
  Dict whole = dump("[0, 1, 2, 3]",
                    {dict(entry(0, 1, "nccl:all_reduce", {{"pg_id", 5}, {"process_group", tuple({"9", "tp"})}}))});
  set(whole, "pg_config",
      dict({{"0", dict({{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0, 1, 2, 3]"}})},
            {"9", dict({{"name", "9"}, {"desc", "tp"}, {"ranks", "[0, 2]"}})}}));
  set(whole, "pg_status",
      dict({{"5", dict({{"last_enqueued_collective", 4}})},
            {"0", dict({{"last_enqueued_collective", -1}})},
            {"1", dict({{"last_enqueued_collective", 8}})}}));
  const Evidence evidence = read_dump(torch_pickle(dict(whole)));
  EXPECT_THAT(group_texts(evidence),
              ElementsAre("0 default_pg [0,1,2,3] position 0 progress 0/-/-", "9 tp [0,2] position 0 progress 4/-/-"));
  EXPECT_EQ(evidence.trace.world_size, 4U);
}

TEST(FlightRecorder, GroupThatIsNotConfiguredHasNoMembers) {
  const Evidence evidence =
      read_entries({dict(entry(0, 1, "nccl:all_reduce", {{"process_group", tuple({"0", "another"})}, {"pg_id", 2}}))});
  EXPECT_THAT(group_texts(evidence),
              ElementsAre("0 default_pg [0,1] position 0 progress 7/0/6", "0 another [] position - progress -/-/-"));
}

TEST(FlightRecorder, RankFromThePath) {
  const std::string bytes = torch_pickle(dict(dump("[0, 1, 2]", {})));
  EXPECT_EQ(read_dump(bytes, "dumps/nccl_trace_rank_2").trace.ranks.front().rank, RankId(2));
  formats::ImportOptions options;
  options.rank_from = std::regex("worker([0-9]+)");
  const Evidence evidence = read_dump(bytes, "worker1/trace", options);
  EXPECT_EQ(evidence.trace.ranks.front().rank, RankId(1));
  EXPECT_THAT(evidence.inputs.front().ranks.values(), ElementsAre(RankId(1)));
  const Evidence nameless = read_dump(bytes, "trace");
  EXPECT_EQ(nameless.trace.ranks.front().rank, std::nullopt);
  EXPECT_EQ(nameless.trace.ranks.front().comm_rank.front(), RankRecord::kNoPosition);
}

TEST(FlightRecorder, VersionsCompareAsNumbers) {
  const auto notices = [](const char* version) {
    Dict whole = dump("[0]", {dict(entry(0, 1, "nccl:all_reduce"))});
    set(whole, "version", version);
    const Evidence evidence = read_dump(torch_pickle(dict(whole)));
    EXPECT_EQ(row_texts(evidence).size(), 1U);
    return evidence.diagnostics.count_of("flight_recorder.newer_version") +
           10 * evidence.diagnostics.count_of("flight_recorder.other_major_version") +
           100 * evidence.diagnostics.count_of("flight_recorder.wrong_type");
  };
  EXPECT_EQ(notices("2.0"), 0U);
  EXPECT_EQ(notices("2.9"), 0U);
  EXPECT_EQ(notices("2.11"), 0U);
  EXPECT_EQ(notices("2.12"), 1U);
  EXPECT_EQ(notices("3.0"), 10U);
  EXPECT_EQ(notices("new"), 100U);
}

TEST(FlightRecorder, KeysAndTypesThatAreNotExpectedAreCounted) {
  Dict whole = dump("[0]", {dict(entry(0, 1, "nccl:all_reduce",
                                       {{"colour", "red"},
                                        {"record_id", "zero"},
                                        {"retired", 1},
                                        {"input_sizes", list({list({"a"})})},
                                        {"process_group", "0"},
                                        {"state", "flying"}})),
                            Value(7)});
  set(whole, "weather", "fine");
  set(whole, "nccl_comm_state", dict({{"0x1", dict({{"rank", "0"}})}}));
  for (const std::string& bytes : {torch_pickle(dict(whole)), python_pickle(dict(whole), 4), json(dict(whole))}) {
    const Evidence evidence = read_dump(bytes);
    EXPECT_THAT(row_texts(evidence),
                ElementsAre("all_reduce nccl:all_reduce pg=- seq=1 group=- ->32 f32>f32 peer=- unknown"));
    EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.unknown_key"), 2U);
    EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.wrong_type"), 6U);
  }
}

TEST(FlightRecorder, MissingKeysAreFine) {
  Dict whole{{"entries", list({dict({{"profiling_name", "nccl:all_reduce"}}), dict({}), dict({{"odd", 1}})})}};
  for (const std::string& bytes : {torch_pickle(dict(whole)), python_pickle(dict(whole), 4), json(dict(whole))}) {
    const Evidence evidence = read_dump(bytes);
    EXPECT_THAT(row_texts(evidence),
                ElementsAre("all_reduce nccl:all_reduce pg=- seq=- group=- ->- unknown>unknown peer=- unknown"));
    EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.empty_entry"), 2U);
    EXPECT_EQ(evidence.trace.world_size, std::nullopt);
  }
}

// torchcomms: no status, no point-to-point counter, and one count over all groups of the process. Here rank 0 is in two
// groups; number 3 of the process is number 1 of group "tp".
TEST(Torchcomms, NumbersAreMadeComparable) {
  const auto row = [](int id, const char* group, const char* name) {
    return dict(entry(id, id, name, {{"process_group", tuple({group, "ncclx"})}, {"retired", id < 3}}));
  };
  Dict whole = dump("[0,1]", {row(0, "main", "nccl:all_reduce"), row(1, "tp", "nccl:all_gather_single"),
                              row(2, "main", "nccl:send"), row(3, "tp", "nccl:all_reduce")});
  set(whole, "pg_config",
      dict({{"main", dict({{"name", "main"}, {"desc", "ncclx"}, {"ranks", "[0,1]"}})},
            {"tp", dict({{"name", "tp"}, {"desc", "ncclx"}, {"ranks", "[0,1]"}})}}));
  set(whole, "pg_status", dict({}));
  EXPECT_THAT(
      row_texts(read_dump(torch_pickle(dict(whole)))),
      ElementsAre("all_reduce nccl:all_reduce pg=main seq=0 group=- 32>32 f32>f32 peer=- completed retired",
                  "all_gather nccl:all_gather_single pg=tp seq=0 group=- 32>32 f32>f32 peer=- completed retired",
                  "send nccl:send pg=main seq=- group=- 32>32 f32>f32 peer=- completed retired",
                  "all_reduce nccl:all_reduce pg=tp seq=1 group=- 32>32 f32>f32 peer=- scheduled"));
  // With the first ones lost there is nothing to count from.
  set(whole, "entries", list({row(8, "main", "nccl:all_reduce"), row(9, "tp", "nccl:all_reduce")}));
  const Evidence late = read_dump(torch_pickle(dict(whole)));
  EXPECT_THAT(row_texts(late)[1], HasSubstr("seq=-"));
  EXPECT_EQ(late.diagnostics.count_of("flight_recorder.process_wide_seq"), 1U);
}

TEST(FlightRecorder, LimitOfEntries) {
  formats::ImportOptions options;
  options.max_ops_per_file = 2;
  List entries;
  for (int i = 0; i < 5; ++i) entries.push_back(dict(entry(i, i + 1, "nccl:all_reduce")));
  const Evidence evidence = read_dump(torch_pickle(dict(dump("[0]", entries))), "rank_0", options);
  EXPECT_EQ(row_texts(evidence).size(), 2U);
  EXPECT_TRUE(evidence.trace.ranks.front().tail_lost);
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.too_many_entries"), 3U);
}

TEST(FlightRecorder, TextThatNoTerminalShouldSeeIsMended) {
  const std::string group = "g\x1b[31mX\n::error::";
  Value value =
      dict(dump("[0, 1]", {dict(entry(0, 1, "nccl:all_\xff_reduce", {{"process_group", tuple({group, "d"})}})),
                           dict(entry(1, 2, "nccl:barrier", {{"\x1b[2Jkey", 1}}))}));
  const Evidence evidence = read_dump(torch_pickle(value));
  EXPECT_EQ(evidence.trace.text(call_of(evidence, 0).name), "nccl:all_\xef\xbf\xbd_reduce");
  EXPECT_EQ(evidence.trace.text(evidence.trace.communicator(evidence.trace.ranks.front().comms[1]).name),
            "gX ::error::");
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.bad_text"), 2U);
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    EXPECT_EQ(diagnostic.detail.find_first_of("\x1b\n"), std::string::npos) << diagnostic.name;
  }
}

TEST(FlightRecorder, LongTextIsCut) {
  const Evidence evidence = read_entries({dict(entry(0, 1, "nccl:" + std::string(100'000, 'x')))});
  EXPECT_EQ(evidence.trace.text(call_of(evidence, 0).name).size(), 1024U);
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.bad_text"), 1U);
}

// Python's json.dump writes them where a float is none.
TEST(Json, NumbersThatJsonDoesNotHaveAreNull) {
  const auto dump_with = [](const std::string& value) {
    return R"({"pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},"entries":[)"
           R"({"profiling_name":"nccl:barrier","collective_seq_id":1,"duration_ms":)" +
           value + R"(,"process_group":["0","NaN -Infinity \"NaN\\"]},{"profiling_name":"nccl:all_reduce",)" +
           R"("duration_ms":)" + value + "}]}";
  };
  const Evidence expected = read_dump(dump_with("null"));
  EXPECT_THAT(group_texts(expected), ElementsAre("0 default_pg [0,1] position 0 progress -/-/-",
                                                 "0 NaN -Infinity \"NaN\\ [] position - progress -/-/-"));
  for (const char* value : {"NaN", "Infinity", "-Infinity"}) {
    const std::string text = dump_with(value);
    const Evidence evidence = read_dump(text);
    EXPECT_EQ(row_texts(evidence), row_texts(expected)) << value;
    EXPECT_EQ(group_texts(evidence), group_texts(expected)) << value;
    EXPECT_TRUE(evidence.diagnostics.empty()) << value;
    EXPECT_EQ(evidence.trace.ranks.front().timing, false) << "no duration was recorded";
    // Places are those of the file, not of what was read instead.
    const std::string cut = text.substr(0, text.size() - 2);
    EXPECT_THAT(read_dump(cut).inputs.front().note, HasSubstr(fmt::format("at byte {0} of {0}", cut.size()))) << value;
  }
}

TEST(Json, SaysWhereItBreaks) {
  const std::string good = R"({"pg_config":{"0":{"name":"0","ranks":"[0]"}},"entries":[{"collective_seq_id":1})";
  EXPECT_THAT(read_dump(good).inputs.front().note,
              HasSubstr(fmt::format("at byte {0} of {0} (the file ends inside)", good.size())));
  EXPECT_THAT(read_dump(good + "!]}").inputs.front().note,
              HasSubstr(fmt::format("at byte {} of {} (no valid JSON there)", good.size(), good.size() + 3)));
  EXPECT_THAT(read_dump(good + "]} 12345").diagnostics.entries().front().detail, HasSubstr("6 bytes behind the end"));
}

TEST(Sniffing, Dumps) {
  const auto pickle = formats::flight_recorder_pickle_importer();
  const auto text = formats::flight_recorder_json_importer();
  EXPECT_EQ(pickle.sniff("x", data_file("gloo_rank_0")), formats::Sniff::sure);
  EXPECT_EQ(pickle.sniff("x", data_file("nccl_protocol_5_rank_1")), formats::Sniff::sure);
  EXPECT_EQ(pickle.sniff("x", torch_pickle(list({1, 2}))), formats::Sniff::maybe);
  EXPECT_EQ(pickle.sniff("x", "\x80"), formats::Sniff::no);
  EXPECT_EQ(pickle.sniff("x", "\x80\x09 pg_config"), formats::Sniff::no);
  EXPECT_EQ(text.sniff("x", data_file("gloo_rank_0.json")), formats::Sniff::sure);
  EXPECT_EQ(text.sniff("x", data_file("nccl_pretty_rank_1.json")), formats::Sniff::sure);
  EXPECT_EQ(text.sniff("x", R"({"entries": 3})"), formats::Sniff::likely);
  EXPECT_EQ(text.sniff("x", R"({"traceEvents": []})"), formats::Sniff::no);
  EXPECT_EQ(text.sniff("x", R"(["pg_config"])"), formats::Sniff::no);
  EXPECT_EQ(text.sniff("x", ""), formats::Sniff::no);
}

}  // namespace
}  // namespace ddx::testing
