#include "traces/formats/megatrace.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "traces/formats/csv.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// A slot is a 16-bit number with one value kept for "none".
constexpr std::size_t kMaxStreams = 4096;
constexpr std::size_t kMostRanks = 65'536;
constexpr Nanos kMostSeconds = INT64_MAX / kSecond - 1;

struct Line {
  Nanos time = 0;
  RankId rank;
  std::string_view function;
  std::uint64_t count = 0;
  std::string_view stream;
  std::uint32_t op_count = 0;
};

// Takes `text` off the front of `rest`.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// Takes a number without sign, of at most `most`, off the front.
std::optional<std::uint64_t> take_number(std::string_view& rest, std::uint64_t most) {
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits == 0 || digits > 18) return std::nullopt;
  const auto value = static_cast<std::uint64_t>(*number_at(rest.substr(0, digits)));
  if (value > most) return std::nullopt;
  rest.remove_prefix(digits);
  return value;
}

// "1755590106.364857579" with exactly nine digits behind the point, as the writer prints them.
std::optional<Nanos> take_time(std::string_view& rest) {
  const auto seconds = take_number(rest, kMostSeconds);
  if (!seconds || !take(rest, ".")) return std::nullopt;
  const std::size_t before = rest.size();
  const auto nanos = take_number(rest, kSecond - 1);
  if (!nanos || before - rest.size() != 9) return std::nullopt;
  return static_cast<Nanos>(*seconds) * kSecond + static_cast<Nanos>(*nanos);
}

std::optional<Line> parse(std::string_view rest) {
  Line line;
  if (!take(rest, "[save_count ") || !take_number(rest, INT64_MAX) || !take(rest, "] [")) return std::nullopt;
  const auto time = take_time(rest);
  if (!time || !take(rest, "] [Rank ")) return std::nullopt;
  const auto rank = take_number(rest, INT32_MAX);
  if (!rank || !take(rest, "] Fun ")) return std::nullopt;
  line.time = *time;
  line.rank = RankId(static_cast<std::int64_t>(*rank));
  line.function = next_word(rest);
  if (line.function.empty() || line.function.size() > 64 || !take(rest, " Data ")) return std::nullopt;
  const auto count = take_number(rest, INT64_MAX);
  if (!count || !take(rest, " stream ")) return std::nullopt;
  line.count = *count;
  line.stream = next_word(rest);
  if (line.stream.empty() || line.stream.size() > 64 || !take(rest, " opCount ")) return std::nullopt;
  // The largest number stands for "none" in a program.
  const auto op_count = take_number(rest, 0xfffffffeU);
  if (!op_count || !trimmed(rest).empty()) return std::nullopt;
  line.op_count = static_cast<std::uint32_t>(*op_count);
  return line;
}

OpKind kind_of(std::string_view function) {
  static const std::map<std::string_view, OpKind> kKinds{
      {"AllReduce", OpKind::all_reduce},
      {"AllGather", OpKind::all_gather},
      {"ReduceScatter", OpKind::reduce_scatter},
      {"Broadcast", OpKind::broadcast},
      {"Reduce", OpKind::reduce},
      {"Gather", OpKind::gather},
      {"Scatter", OpKind::scatter},
      {"AlltoAll", OpKind::all_to_all},
      {"AllToAll", OpKind::all_to_all},
      {"Send", OpKind::send},
      {"Recv", OpKind::recv},
  };
  const auto at = kKinds.find(function);
  return at == kKinds.end() ? OpKind::unknown : at->second;
}

// Some streams carry calls of several communicators; there opCount is no place in one list.
struct Stream {
  std::uint16_t slot = 0;
  bool counts_up = true;
  std::optional<std::uint32_t> last;
};

class RankReader {
 public:
  RankReader(RankId rank, Evidence& out) : out_(out) {
    record_.rank = rank;
    record_.input = InputId(0);
    record_.backend = "nccl";
    record_.stream_ordered = true;
    record_.head_lost = true;
    record_.tail_lost = true;
  }

  bool add(const Line& line) {
    Stream* stream = stream_of(line.stream);
    if (stream == nullptr) return false;
    Signature signature;
    signature.kind = kind_of(line.function);
    signature.name = out_.trace.strings.intern(line.function);
    signature.count_in = line.count;
    signature.stream = stream->slot;
    if (is_collective(signature.kind)) {
      stream->counts_up = stream->counts_up && (!stream->last || *stream->last < line.op_count);
      stream->last = line.op_count;
    }
    Op op;
    op.signature = out_.trace.intern(std::move(signature));
    op.comm_slot = stream->slot;
    op.seq = line.op_count;
    op.issue = line.time;
    ops_.push_back(op);
    return true;
  }

  void finish() {
    std::vector<bool> counts_up(streams_.size());
    for (const auto& [name, stream] : streams_) counts_up[stream.slot] = stream.counts_up;
    Program program;
    program.reserve(ops_.size());
    for (Op& op : ops_) {
      if (!counts_up[*op.comm_slot]) op.seq.reset();
      program.append(op);
    }
    record_.program = ProgramId(out_.trace.programs.size());
    record_.progress.resize(record_.comms.size());
    out_.trace.programs.push_back(std::move(program));
    out_.trace.ranks.push_back(std::move(record_));
  }

 private:
  Stream* stream_of(std::string_view name) {
    if (const auto at = streams_.find(name); at != streams_.end()) return &at->second;
    if (streams_.size() == kMaxStreams) return nullptr;
    Stream stream;
    stream.slot = static_cast<std::uint16_t>(streams_.size());
    Communicator communicator;
    communicator.name =
        out_.trace.strings.intern("rank " + std::to_string(record_.rank->value) + " stream " + printable(name, 64));
    communicator.synthesized = true;
    record_.comms.push_back(out_.trace.intern(std::move(communicator)));
    record_.comm_rank.push_back(RankRecord::kNoPosition);
    return &streams_.emplace(std::string(name), stream).first->second;
  }

  Evidence& out_;
  RankRecord record_;
  std::map<std::string, Stream, std::less<>> streams_;
  std::vector<Op> ops_;
};

void read(const Source& source, const ImportOptions& options, Evidence& out) {
  std::map<RankId, RankReader> ranks;
  std::string_view rest = source.bytes;
  std::uint64_t ops = 0;
  for (std::uint64_t number = 1; !rest.empty(); ++number) {
    const std::string_view text = take_line(rest);
    if (trimmed(text).empty()) continue;
    const auto place = [&] { return source.path + ":" + std::to_string(number); };
    const auto line = parse(text);
    if (!line) {
      out.diagnostics.count("megatrace.bad_line", DiagnosticSeverity::data_loss,
                            place() +
                                ": expected [save_count N] [sec.nsec] [Rank R] Fun NAME Data COUNT stream PTR "
                                "opCount N");
      continue;
    }
    auto at = ranks.find(line->rank);
    if (at == ranks.end() && ranks.size() < kMostRanks) at = ranks.try_emplace(line->rank, line->rank, out).first;
    if (ops >= options.max_ops_per_file || at == ranks.end() || !at->second.add(*line)) {
      out.diagnostics.count("megatrace.too_much", DiagnosticSeverity::data_loss,
                            place() + ": more calls, ranks or streams than ddx keeps of one file");
      continue;
    }
    ++ops;
  }
  if (ranks.empty())
    throw Error(source.path, {std::nullopt, 1}, "expected a line \"[save_count N] [sec.nsec] [Rank R] Fun ...\"");
  for (auto& [rank, reader] : ranks) {
    reader.finish();
    out.inputs.front().ranks.insert(rank);
  }
}

// A few lines are enough; the first may be cut, or of something else.
Sniff sniff(const std::string&, std::string_view head) {
  for (int lines = 0; lines < 8 && !head.empty(); ++lines) {
    if (parse(take_line(head))) return Sniff::sure;
  }
  return Sniff::no;
}

}  // namespace

Importer megatrace_importer() {
  return {"megatrace", "Megatrace's log of NCCL calls: times of issue on the host, no communicators", sniff, read};
}

}  // namespace ddx::formats
