// flight_recorder_speed [FILE...]: reads dumps from memory again and again and prints the rate of one core. Without a
// file it makes its own: 2,000 entries, 3 groups, stacks of 20 frames that entries share. Not part of the tests.
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "tests/traces/formats/flight_recorder/dump_writer.h"
#include "traces/formats/flight_recorder.h"

namespace {

using ddx::testing::dict;
using ddx::testing::dump;
using ddx::testing::entry;
using ddx::testing::list;
using ddx::testing::List;
using ddx::testing::tuple;
using ddx::testing::Value;

Value made_dump() {
  List frames;
  for (int i = 0; i < 60; ++i) {
    frames.push_back(dict({{"name", fmt::format("function_{}", i)},
                           {"filename", fmt::format("/opt/training/module_{}.py", i / 5)},
                           {"line", 100 + i}}));
  }
  List entries;
  for (int i = 0; i < 2000; ++i) {
    const int group = i % 3;
    List stack;
    for (int k = 0; k < 20; ++k) stack.push_back(frames[static_cast<std::size_t>((group * 20 + k + (i % 4)) % 60)]);
    entries.push_back(dict(entry(i, i / 3 + 1, group == 2 ? "nccl:_all_gather_base" : "nccl:all_reduce",
                                 {{"frames", list(stack)},
                                  {"pg_id", group},
                                  {"process_group", tuple({std::to_string(group), "group"})},
                                  {"input_sizes", list({list({1024, 1 + i % 7})})},
                                  {"state", "completed"},
                                  {"time_discovered_completed_ns", std::int64_t{1'700'000'000'500'000'000} + i},
                                  {"retired", true}})));
  }
  return dict(dump("[0, 1, 2, 3]", std::move(entries)));
}

void measure(const std::string& name, const std::string& bytes) {
  const auto pickle = ddx::formats::flight_recorder_pickle_importer();
  const auto text = ddx::formats::flight_recorder_json_importer();
  const auto& importer = bytes.starts_with('\x80') ? pickle : text;
  std::size_t rounds = 0, entries = 0;
  const std::clock_t begin = std::clock();
  double seconds = 0;
  for (; seconds < 2; ++rounds) {
    ddx::Evidence evidence;
    evidence.inputs.emplace_back().path = name;
    importer.read({name, bytes}, {}, evidence);
    entries += evidence.trace.programs.front().size();
    seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  fmt::print("{}: {} bytes, {:.0f} MB/s, {:.0f} ns an entry (processor time)\n", name, bytes.size(),
             static_cast<double>(bytes.size() * rounds) / seconds / 1e6, seconds * 1e9 / static_cast<double>(entries));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    measure(argv[i], std::string(std::istreambuf_iterator<char>(in), {}));
  }
  if (argc > 1) return 0;
  measure("made pickle of PyTorch's form, rank_0", torch_pickle(made_dump()));
  measure("made pickle of Python's form, rank_0", python_pickle(made_dump(), 4));
  measure("made JSON, rank_0", json(made_dump()));
}
