// ddx_generate_dumps --out DIR [--ranks N] [--entries N] [--fault skip@RANK:OP|none] [--format pickle|json]
// Writes DIR/rank_0 ... : what the flight recorders of a hung job leave. The same arguments give the same bytes.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tests/bench/hung_job.h"

namespace {

using ddx::Error;
using ddx::bench::HungJob;
using ddx::bench::JobShape;

struct Request {
  JobShape shape;
  std::string folder;
  std::string fault;  // empty: a tensor-parallel all_reduce in the last step, of the rank in the middle
  bool json = false;
};

std::uint32_t number(std::string_view text, std::string_view what) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    throw Error(fmt::format("{}: expected a number, found '{}'", what, text));
  }
  return value;
}

Request parse(const std::vector<std::string>& arguments) {
  Request request;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& option = arguments[i];
    if (i + 1 == arguments.size()) throw Error(fmt::format("{} needs a value", option));
    const std::string& value = arguments[i + 1];
    if (option == "--ranks") {
      request.shape.ranks = number(value, option);
    } else if (option == "--entries") {
      request.shape.ops = number(value, option);
    } else if (option == "--out") {
      request.folder = value;
    } else if (option == "--fault") {
      request.fault = value;
    } else if (option == "--format" && (value == "pickle" || value == "json")) {
      request.json = value == "json";
    } else {
      throw Error(fmt::format("no such option or value: {} {}", option, value));
    }
  }
  if (request.folder.empty()) throw Error("--out DIR is needed");
  return request;
}

void place_fault(Request& request) {
  JobShape& shape = request.shape;
  if (request.fault == "none") return;
  if (request.fault.empty()) {
    constexpr std::uint32_t kReduceInStep = 5;  // the third all_reduce of a step
    const std::uint32_t steps = std::max(shape.ops / ddx::bench::kStepOps, 1U);
    shape.skip = {.rank = shape.ranks / 2 + 5, .op = (steps - 1) * ddx::bench::kStepOps + kReduceInStep};
    return;
  }
  const std::string_view fault = request.fault;
  const std::size_t colon = fault.find(':');
  if (!fault.starts_with("skip@") || colon == std::string_view::npos) throw Error("--fault: expected skip@RANK:OP");
  shape.skip = {.rank = number(fault.substr(5, colon - 5), "--fault"),
                .op = number(fault.substr(colon + 1), "--fault")};
}

std::uint64_t write_rank(const HungJob& job, const Request& request, std::uint32_t rank) {
  const std::string dump = request.json ? json_dump(job, rank) : pickle_dump(job, rank);
  const auto path = std::filesystem::path(request.folder) / fmt::format("rank_{}", rank);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(dump.data(), static_cast<std::streamsize>(dump.size()));
  out.close();
  if (!out) throw Error(path.string() + ": cannot be written");
  return dump.size();
}

std::uint64_t write_all(const HungJob& job, const Request& request) {
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    try {
      for (std::uint32_t rank = next++; rank < job.shape().ranks && !failed; rank = next++) {
        bytes += write_rank(job, request, rank);
      }
    } catch (const std::exception& error) {
      if (!failed.exchange(true)) fmt::print(stderr, "ddx_generate_dumps: {}\n", error.what());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1U); ++i) threads.emplace_back(work);
  }
  if (failed) throw Error("not all dumps were written");
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Request request = parse({argv + 1, argv + argc});
    place_fault(request);
    const HungJob job(request.shape);
    std::filesystem::create_directories(request.folder);
    const std::uint64_t bytes = write_all(job, request);
    fmt::print("{} ranks, {} operations each, {} bytes\n", request.shape.ranks, job.ops(), bytes);
    if (request.shape.skip) {
      fmt::print("rank {} skips operation {}\n", request.shape.skip->rank, request.shape.skip->op);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ddx_generate_dumps: {}\n", error.what());
    return 2;
  }
}
