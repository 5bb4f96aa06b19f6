#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "traces/capture/writer.h"
#include "traces/formats/ddx.h"
#include "traces/formats/ddx_codes.h"

namespace ddx::formats {
namespace {

using capture::Field;
using capture::More;

class Exporter {
 public:
  Exporter(const Trace& trace, const RankRecord& record, capture::Writer& writer)
      : trace_(trace), record_(record), writer_(writer) {}
  std::size_t run();

 private:
  std::uint32_t text(StringId id) { return writer_.text(trace_.text(id)); }
  std::uint32_t group_of(std::uint16_t slot);
  std::uint32_t frame_of(CallSiteId site);
  void add(Field field, std::int64_t value);
  void add_all(Field field, const std::vector<std::uint64_t>& values);
  void further(const Signature& signature);
  void append(const Op& op, const Signature& signature);

  const Trace& trace_;
  const RankRecord& record_;
  capture::Writer& writer_;
  std::map<std::uint16_t, std::uint32_t> groups_;
  std::map<CallSiteId, std::uint32_t> sites_;
  std::vector<More> more_;
};

std::uint32_t Exporter::group_of(std::uint16_t slot) {
  const auto [at, fresh] = groups_.try_emplace(slot, 0);
  if (!fresh) return at->second;
  const Communicator& communicator = trace_.communicator(record_.comms[slot]);
  capture::Group group{};
  group.layer = static_cast<std::uint8_t>(capture::Layer::program);
  group.name = text(communicator.name);
  group.description = text(communicator.description);
  group.backend = writer_.text(record_.backend);
  group.size = communicator.size() > 0 ? static_cast<std::int32_t>(communicator.size()) : -1;
  const std::uint32_t position = record_.comm_rank[slot];
  group.position = position == RankRecord::kNoPosition ? -1 : static_cast<std::int32_t>(position);
  std::vector<std::int32_t> ranks;
  for (const RankId rank : communicator.members) ranks.push_back(rank.value);
  group.first = ranks.empty() ? -1 : ranks.front();
  return at->second = writer_.group(group, ranks.data(), ranks.size());
}

std::uint32_t Exporter::frame_of(CallSiteId site) {
  const auto [at, fresh] = sites_.try_emplace(site, 0);
  if (!fresh) return at->second;
  const std::vector<Frame>& frames = trace_.call_site(site).frames;
  std::uint32_t caller = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    capture::Frame out{};
    out.caller = caller;
    out.function = text(frame->function);
    out.file = text(frame->file);
    out.line = frame->line;
    caller = writer_.frame(out);
  }
  return at->second = caller;
}

void Exporter::add(Field field, std::int64_t value) {
  if (more_.empty() || more_.back().field != static_cast<std::uint8_t>(field) ||
      more_.back().count == std::size(more_.back().values)) {
    More more{};
    more.field = static_cast<std::uint8_t>(field);
    more_.push_back(more);
  }
  more_.back().values[more_.back().count++] = value;
}

void Exporter::add_all(Field field, const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) add(field, static_cast<std::int64_t>(value));
}

void Exporter::further(const Signature& signature) {
  more_.clear();
  add_all(Field::split_in, signature.split_in);
  add_all(Field::split_out, signature.split_out);
  for (const std::int32_t rank : signature.members) add(Field::members, rank);
  if (signature.count_out) add(Field::count_out, static_cast<std::int64_t>(*signature.count_out));
  if (signature.tag) add(Field::tag, *signature.tag);
  if (signature.type_out != signature.type_in) {
    add(Field::element_out, static_cast<std::int64_t>(code_of(signature.type_out)));
  }
  if (signature.name != StringId()) add(Field::name, text(signature.name));
}

void Exporter::append(const Op& op, const Signature& signature) {
  capture::Call call{};
  call.kind = static_cast<std::uint8_t>(code_of(signature.kind));
  call.element = static_cast<std::uint8_t>(code_of(signature.type_in));
  call.reduction = static_cast<std::uint8_t>(code_of(signature.redop));
  call.group = op.comm_slot ? group_of(*op.comm_slot) : 0;
  call.seq = op.seq.value_or(0);
  call.peer = trace_.peer(record_, signature).value_or(-1);
  call.site = op.call_site ? frame_of(*op.call_site) : 0;
  const auto count = signature.kind == OpKind::recv ? signature.count_out : signature.count_in;
  call.count = count.value_or(0);
  if (!count) call.flags |= capture::kNoCount;
  if (signature.async) call.flags |= capture::kAsync;
  if (op.state == OpState::unknown) call.flags |= capture::kNoEnd;
  call.issue = op.issue.value_or(0);
  call.start = op.start.value_or(0);
  call.end = op.end.value_or(op.state == OpState::completed ? std::max<std::int64_t>(call.issue, 1) : 0);
  call.stream = signature.stream ? static_cast<std::uint16_t>(*signature.stream % 0xffff + 1) : 0;
  call.batch = op.group ? static_cast<std::uint16_t>(*op.group % 0xffff + 1) : 0;
  further(signature);
  writer_.call(call, more_.data(), more_.size(), 0);
}

std::size_t Exporter::run() {
  const Program& program = trace_.program(record_);
  std::size_t left_out = 0;
  for (OpCursor cursor(program); !cursor.done(); cursor.next()) {
    const Op op = program.at(cursor.op());
    const Signature& signature = trace_.signature(op.signature);
    const bool is_call = is_collective(signature.kind) || is_p2p(signature.kind);
    // What was planned was never called.
    if (is_call && op.state != OpState::planned) {
      append(op, signature);
    } else {
      ++left_out;
    }
  }
  return left_out;
}

}  // namespace

std::size_t write_ddx(const Trace& trace, const RankRecord& record, const std::string& path) {
  capture::Header identity{};
  identity.pid = record.pid.value_or(0);
  identity.rank = record.rank ? record.rank->value : -1;
  identity.world_size = trace.world_size ? static_cast<std::int32_t>(*trace.world_size) : -1;
  identity.local_rank = -1;
  identity.attempt = record.attempt ? static_cast<std::int32_t>(*record.attempt) : -1;
  record.host.copy(identity.host, sizeof(identity.host) - 1);
  capture::Limits limits;
  limits.ring_segments = 8192;  // all of it: nothing is written over
  // Two megabytes of addresses of segments: not on the stack.
  const auto writer = std::make_unique<capture::Writer>();
  if (const int error = writer->open(path.c_str(), identity, limits); error != 0) {
    throw Error(path, {}, "cannot be written: " + std::generic_category().message(error));
  }
  // The trace's times stand as they are.
  capture::Header& header = *writer->header();
  header.start_monotonic = header.start_realtime = 0;
  const std::size_t left_out = Exporter(trace, record, *writer).run();
  const bool failed = header.stopped != 0 || header.lost != 0;
  if (record.whole_program && !failed) header.finished_realtime = 1;
  writer->close();
  if (failed) throw Error(path, {}, "could not be written to its end: the disk is full");
  return left_out;
}

}  // namespace ddx::formats
