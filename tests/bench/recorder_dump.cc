// The two forms of a dump. What is shared between entries is written as PyTorch 2.13 writes it: every distinct text
// once, every distinct frame once, all else again and again.
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "tests/bench/hung_job.h"

namespace ddx::bench {
namespace {

constexpr std::int64_t kFirstTime = 1'790'000'000'000'000'000;  // wall clock, nanoseconds
constexpr std::int64_t kTimeoutMs = 600'000;

struct CodeLine {
  std::string function;
  std::string file;
  std::int64_t line = 0;
  bool operator==(const CodeLine&) const = default;
};

// 20 frames, innermost first: PyTorch's own two, four that tell the calls of a step apart, the same 14 below.
std::vector<CodeLine> stack_of(std::size_t step_op) {
  const std::string site = "/opt/conda/lib/python3.11/site-packages/";
  std::vector<CodeLine> frames{{"all_reduce", site + "torch/distributed/distributed_c10d.py", 2930},
                               {"wrapper", site + "torch/distributed/c10d_logger.py", 83}};
  const auto op = static_cast<std::int64_t>(step_op);
  frames.push_back({"reduce_from_region", "/workspace/train/parallel/mappings.py", 30 + op * 11});
  frames.push_back({"forward", fmt::format("/workspace/train/model/layer_{}.py", step_op / 4), 40 + op % 4 * 25});
  frames.push_back({"_call_impl", site + "torch/nn/modules/module.py", 1750 + op % 2 * 12});
  frames.push_back({"run_block", "/workspace/train/model/transformer.py", 200 + op});
  for (std::int64_t depth = 0; depth < 14; ++depth) {
    frames.push_back({fmt::format("train_phase_{}", depth), fmt::format("/workspace/train/loop_{}.py", depth / 5),
                      100 + depth * 17});
  }
  return frames;
}

// What of an entry depends on its time: the same for both forms.
struct Moment {
  std::int64_t created = 0;
  std::int64_t completed = 0;  // 0: never
};

Moment moment_of(const HungJob& job, std::uint32_t rank, std::uint32_t op) {
  // Ranks are off by up to a millisecond, the same one every time.
  const std::int64_t off = (std::int64_t{rank} * 7'919 + std::int64_t{op} * 104'729) % 1'000'000;
  Moment moment{kFirstTime + std::int64_t{op} * 2'100'000 + off, 0};
  if (job.completes(rank, op)) moment.completed = moment.created + 3'000'000 + off / 3;
  return moment;
}

struct Counters {
  std::array<std::uint32_t, kScopes> enqueued{};
  std::array<std::uint32_t, kScopes> completed{};
};

// Calls `each(row, op, seq)` for what `rank` enqueued, in order; returns how far its groups came.
template <class Each>
Counters walk(const HungJob& job, std::uint32_t rank, Each each) {
  Counters counters;
  std::uint32_t row = 0;
  for (std::uint32_t op = 0; op < job.ops(); ++op) {
    if (job.skips(rank, op)) continue;
    const auto scope = static_cast<std::size_t>(job.step_op(op).scope);
    const std::uint32_t seq = ++counters.enqueued[scope];
    if (job.completes(rank, op)) counters.completed[scope] = seq;
    each(row++, op, seq);
  }
  return counters;
}

constexpr std::array<std::string_view, kScopes> kDescriptions{"default_pg", "mesh_tp", "mesh_dp"};

std::string rank_list(const HungJob& job, std::uint32_t rank, Scope scope) {
  return fmt::format("[{}]", fmt::join(job.group_members(rank, scope), ", "));
}

std::string thread_of(std::uint32_t rank) { return std::to_string(140'000'000'000'000 + std::int64_t{rank} * 4'096); }

// The value opcodes that PyTorch's pickler uses, and its memo.
class TorchPickler {
 public:
  TorchPickler() { bytes_ = "\x80\x02"; }

  void open_dict() { bytes_ += "}("; }
  void close_dict() { bytes_ += 'u'; }
  void open_list() { bytes_ += "]("; }
  void close_list() { bytes_ += 'e'; }
  void pair() { bytes_ += '\x86'; }
  void none() { bytes_ += 'N'; }
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }

  void integer(std::int64_t value) {
    if (value >= 0 && value <= 0xff) return number('K', value, 1);
    if (value >= 0 && value <= 0xffff) return number('M', value, 2);
    if (value >= INT32_MIN && value <= INT32_MAX) return number('J', value, 4);
    bytes_ += '\x8a';
    number('\x08', value, 8);
  }

  // A text by a number that stands for it all through the file; its first use writes it.
  std::uint32_t declare(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (added) texts_.push_back({text, kUnput});
    return at->second;
  }
  void text(std::uint32_t number) {
    Text& text = texts_[number];
    if (text.memo != kUnput) return get(text.memo);
    this->number('X', static_cast<std::int64_t>(text.bytes.size()), 4);
    bytes_ += text.bytes;
    text.memo = put();
  }
  void text(const std::string& text) { this->text(declare(text)); }

  std::uint32_t put() {
    memo_ <= 0xff ? number('q', memo_, 1) : number('r', memo_, 4);
    return memo_++;
  }
  void get(std::uint32_t memo) { memo <= 0xff ? number('h', memo, 1) : number('j', memo, 4); }

  std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

  static constexpr std::uint32_t kUnput = UINT32_MAX;

 private:
  void number(char opcode, std::int64_t value, int bytes) {
    bytes_ += opcode;
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }

  struct Text {
    std::string bytes;
    std::uint32_t memo;
  };
  std::string bytes_;
  std::vector<Text> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint32_t memo_ = 0;
};

class PickleDump {
 public:
  PickleDump(const HungJob& job, std::uint32_t rank) : job_(job), rank_(rank) {
    for (std::size_t i = 0; i < kKeys.size(); ++i) keys_[i] = to_.declare(std::string(kKeys[i]));
    for (std::size_t i = 0; i < kScopes; ++i) {
      names_[i] = to_.declare(job.group_name(rank, static_cast<Scope>(i)));
      descriptions_[i] = to_.declare(std::string(kDescriptions[i]));
    }
    for (std::uint32_t i = 0; i < kStepOps; ++i) {
      ops_[i] = to_.declare(std::string(job.step_op(i).name));
      types_[i] = to_.declare(std::string(job.step_op(i).type));
      for (const CodeLine& line : stack_of(i)) stacks_[i].push_back(frame_number(line));
    }
  }

  std::string write() {
    const Counters counters = walk(job_, rank_, [](auto, auto, auto) {});
    to_.open_dict();
    to_.text("version");
    to_.text("2.10");
    write_config();
    to_.text("comm_lib_version");
    to_.text("2.27.5");
    write_status(counters);
    to_.text("entries");
    to_.open_list();
    walk(job_, rank_, [&](std::uint32_t row, std::uint32_t op, std::uint32_t seq) { write_entry(row, op, seq); });
    to_.close_list();
    to_.close_dict();
    to_.put();
    return to_.finish();
  }

 private:
  enum Key {
    frames,
    record_id,
    pg_id,
    process_group,
    thread_name,
    thread_id,
    collective_seq_id,
    p2p_seq_id,
    op_id,
    profiling_name,
    time_created_ns,
    input_sizes,
    input_dtypes,
    output_sizes,
    output_dtypes,
    state,
    started_ns,
    completed_ns,
    retired,
    timeout_ms,
    is_p2p,
    function_name,
    file_name,
    line_number,
    count_of_keys
  };
  static constexpr std::array<std::string_view, count_of_keys> kKeys{"frames",
                                                                     "record_id",
                                                                     "pg_id",
                                                                     "process_group",
                                                                     "thread_name",
                                                                     "thread_id",
                                                                     "collective_seq_id",
                                                                     "p2p_seq_id",
                                                                     "op_id",
                                                                     "profiling_name",
                                                                     "time_created_ns",
                                                                     "input_sizes",
                                                                     "input_dtypes",
                                                                     "output_sizes",
                                                                     "output_dtypes",
                                                                     "state",
                                                                     "time_discovered_started_ns",
                                                                     "time_discovered_completed_ns",
                                                                     "retired",
                                                                     "timeout_ms",
                                                                     "is_p2p",
                                                                     "name",
                                                                     "filename",
                                                                     "line"};

  struct FrameText {
    CodeLine line;
    std::uint32_t function, file;
    std::uint32_t memo = TorchPickler::kUnput;
  };

  std::size_t frame_number(const CodeLine& line) {
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      if (frames_[i].line == line) return i;
    }
    frames_.push_back({line, to_.declare(line.function), to_.declare(line.file)});
    return frames_.size() - 1;
  }

  void key(Key which) { to_.text(keys_[which]); }

  void write_config() {
    to_.text("pg_config");
    to_.open_dict();
    for (std::size_t i = 0; i < kScopes; ++i) {
      to_.text(names_[i]);
      to_.open_dict();
      to_.text("name");
      to_.text(names_[i]);
      to_.text("desc");
      to_.text(descriptions_[i]);
      to_.text("ranks");
      to_.text(rank_list(job_, rank_, static_cast<Scope>(i)));
      to_.close_dict();
    }
    to_.close_dict();
  }

  void write_status(const Counters& counters) {
    const auto none = [](std::uint32_t seq) { return seq == 0 ? -1 : std::int64_t{seq}; };
    to_.text("pg_status");
    to_.open_dict();
    for (std::size_t i = 0; i < kScopes; ++i) {
      to_.text(std::to_string(i));
      to_.open_dict();
      to_.text("last_enqueued_collective");
      to_.integer(none(counters.enqueued[i]));
      to_.text("last_started_collective");
      to_.integer(-1);  // timing is off
      to_.text("last_completed_collective");
      to_.integer(none(counters.completed[i]));
      to_.close_dict();
    }
    to_.close_dict();
  }

  void write_frames(std::size_t step_op) {
    to_.open_list();
    for (std::size_t number : stacks_[step_op]) {
      FrameText& frame = frames_[number];
      if (frame.memo != TorchPickler::kUnput) {
        to_.get(frame.memo);
        continue;
      }
      to_.open_dict();
      key(function_name);
      to_.text(frame.function);
      key(file_name);
      to_.text(frame.file);
      key(line_number);
      to_.integer(frame.line.line);
      to_.close_dict();
      frame.memo = to_.put();
    }
    to_.close_list();
  }

  void write_sizes(const std::array<std::int64_t, 2>& shape) {
    to_.open_list();
    to_.open_list();
    to_.integer(shape[0]);
    if (shape[1] != 0) to_.integer(shape[1]);
    to_.close_list();
    to_.close_list();
  }

  void write_types(std::uint32_t type) {
    to_.open_list();
    to_.text(type);
    to_.close_list();
  }

  void write_entry(std::uint32_t row, std::uint32_t op, std::uint32_t seq) {
    const std::size_t at = op % kStepOps;
    const StepOp& what = job_.step_op(op);
    const auto scope = static_cast<std::size_t>(what.scope);
    const Moment moment = moment_of(job_, rank_, op);
    to_.open_dict();
    key(frames), write_frames(at);
    key(record_id), to_.integer(row);
    key(pg_id), to_.integer(static_cast<std::int64_t>(scope));
    key(process_group), to_.text(names_[scope]), to_.text(descriptions_[scope]), to_.pair();
    key(thread_name), to_.text(python_);
    key(thread_id), to_.text(thread_);
    key(collective_seq_id), to_.integer(seq);
    key(p2p_seq_id), to_.integer(0);
    key(op_id), to_.integer(seq);
    key(profiling_name), to_.text(ops_[at]);
    key(time_created_ns), to_.integer(moment.created);
    key(input_sizes), write_sizes(what.in);
    key(input_dtypes), write_types(types_[at]);
    key(output_sizes), write_sizes(what.out);
    key(output_dtypes), write_types(types_[at]);
    key(state), to_.text(moment.completed != 0 ? completed_ : scheduled_);
    key(started_ns), to_.none();
    key(completed_ns), moment.completed != 0 ? to_.integer(moment.completed) : to_.none();
    key(retired), to_.boolean(moment.completed != 0);
    key(timeout_ms), to_.integer(kTimeoutMs);
    key(is_p2p), to_.boolean(false);
    to_.close_dict();
  }

  const HungJob& job_;
  std::uint32_t rank_;
  TorchPickler to_;
  std::array<std::uint32_t, count_of_keys> keys_{};
  std::array<std::uint32_t, kScopes> names_{}, descriptions_{};
  std::array<std::uint32_t, kStepOps> ops_{}, types_{};
  std::array<std::vector<std::size_t>, kStepOps> stacks_;
  std::vector<FrameText> frames_;
  std::uint32_t python_ = to_.declare("python"), thread_ = to_.declare(thread_of(rank_));
  std::uint32_t completed_ = to_.declare("completed"), scheduled_ = to_.declare("scheduled");
};

std::string json_shape(const std::array<std::int64_t, 2>& shape) {
  return shape[1] == 0 ? fmt::format("[[{}]]", shape[0]) : fmt::format("[[{},{}]]", shape[0], shape[1]);
}

std::string json_groups(const HungJob& job, std::uint32_t rank) {
  std::string text;
  for (std::size_t i = 0; i < kScopes; ++i) {
    const auto scope = static_cast<Scope>(i);
    fmt::format_to(std::back_inserter(text), R"({}"{}":{{"desc":"{}","name":"{}","ranks":"{}"}})", i == 0 ? "" : ",",
                   job.group_name(rank, scope), kDescriptions[i], job.group_name(rank, scope),
                   rank_list(job, rank, scope));
  }
  return text;
}

std::string json_status(const Counters& counters) {
  std::string text;
  for (std::size_t i = 0; i < kScopes; ++i) {
    const auto none = [](std::uint32_t seq) { return seq == 0 ? std::string("-1") : std::to_string(seq); };
    fmt::format_to(
        std::back_inserter(text),
        R"({}"{}":{{"last_completed_collective":"{}","last_enqueued_collective":"{}","last_started_collective":"-1"}})",
        i == 0 ? "" : ",", i, none(counters.completed[i]), none(counters.enqueued[i]));
  }
  return text;
}

}  // namespace

std::string pickle_dump(const HungJob& job, std::uint32_t rank) { return PickleDump(job, rank).write(); }

std::string json_dump(const HungJob& job, std::uint32_t rank) {
  std::string text = R"({"comm_lib_version":"2.27.5","entries":[)";
  const std::string thread = thread_of(rank);
  const Counters counters = walk(job, rank, [&](std::uint32_t row, std::uint32_t op, std::uint32_t seq) {
    const StepOp& what = job.step_op(op);
    const auto scope = static_cast<std::size_t>(what.scope);
    const Moment moment = moment_of(job, rank, op);
    const bool done = moment.completed != 0;
    fmt::format_to(
        std::back_inserter(text),
        R"({}{{"collective_seq_id":{},"input_dtypes":["{}"],"input_sizes":{},"is_p2p":false,"op_id":{},)"
        R"("output_dtypes":["{}"],"output_sizes":{},"p2p_seq_id":0,"pg_id":{},"process_group":["{}","{}"],)"
        R"("profiling_name":"{}","record_id":{},"retired":{},"state":"{}","thread_id":"{}","thread_name":"python",)"
        R"("time_created_ns":{},"time_discovered_completed_ns":{},"time_discovered_started_ns":0,"timeout_ms":{}}})",
        row == 0 ? "" : ",", seq, what.type, json_shape(what.in), seq, what.type, json_shape(what.out), scope,
        job.group_name(rank, what.scope), kDescriptions[scope], what.name, row, done, done ? "completed" : "scheduled",
        thread, moment.created, moment.completed, kTimeoutMs);
  });
  text += R"(],"nccl_comm_state":{},"pg_config":{)" + json_groups(job, rank);
  text += R"(},"pg_status":{)" + json_status(counters);
  return text + R"(},"version":"2.10"})";
}

}  // namespace ddx::bench
