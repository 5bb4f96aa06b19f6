#include "tests/live/nccl/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "live/preload/nccl_abi.h"

namespace ddx::nccl_test {

namespace {

using capture::CallKind;

const std::map<std::string, CallKind> kKinds = {{"all_reduce", CallKind::all_reduce},
                                                {"broadcast", CallKind::broadcast},
                                                {"reduce", CallKind::reduce},
                                                {"all_gather", CallKind::all_gather},
                                                {"reduce_scatter", CallKind::reduce_scatter},
                                                {"all_to_all", CallKind::all_to_all},
                                                {"gather", CallKind::gather},
                                                {"scatter", CallKind::scatter},
                                                {"send", CallKind::send},
                                                {"recv", CallKind::recv},
                                                {"init", CallKind::new_group},
                                                {"shrink", CallKind::new_group},
                                                {"split", CallKind::split_group}};

// By NCCL's numbers.
constexpr capture::ElementType kElements[] = {
    capture::ElementType::i8,  capture::ElementType::u8,   capture::ElementType::i32,    capture::ElementType::u32,
    capture::ElementType::i64, capture::ElementType::u64,  capture::ElementType::f16,    capture::ElementType::f32,
    capture::ElementType::f64, capture::ElementType::bf16, capture::ElementType::f8e4m3, capture::ElementType::f8e5m2};
constexpr capture::Reduction kReductions[] = {capture::Reduction::sum, capture::Reduction::prod,
                                              capture::Reduction::max, capture::Reduction::min,
                                              capture::Reduction::avg};

int element_of(long long type) { return type >= 0 && type < 12 ? static_cast<int>(kElements[type]) : 0; }

int reduction_of(long long op) {
  if (op < 0) return 0;
  return static_cast<int>(op < 5 ? kReductions[op] : capture::Reduction::premul_sum);
}

bool is_maker(const std::string& what) { return what == "init" || what == "shrink" || what == "split"; }
bool is_operation(const std::string& what) { return kKinds.contains(what) && !is_maker(what); }
bool is_transfer(CallKind kind) { return kind == CallKind::send || kind == CallKind::recv; }

// What goes in, of the user's count.
long long elements_in(const LedgerLine& line) {
  const long long size = line.number("size");
  const long long count = line.number("count");
  if (line.what == "reduce_scatter" || line.what == "all_to_all") return count * size;
  if (line.what == "scatter") return line.number("rank") == line.number("root") ? count * size : 0;
  return count;
}

// Two names for one thing, all the way.
class Bijection {
 public:
  bool fits(const std::string& left, const std::string& right) {
    const auto forth = forth_.try_emplace(left, right).first;
    const auto back = back_.try_emplace(right, left).first;
    return forth->second == right && back->second == left;
  }

 private:
  std::map<std::string, std::string> forth_, back_;
};

template <class Left, class Right>
void expect_same(std::vector<std::string>& found, const std::string& where, const char* what, const Left& left,
                 const Right& right) {
  const std::string a = fmt::format("{}", left);
  const std::string b = fmt::format("{}", right);
  if (a != b) found.push_back(fmt::format("{}: {} is {} in the ledger, {} in the capture", where, what, a, b));
}

// Communicators have one hash over all ranks, and each its own.
struct Names {
  Bijection hashes;   // ledger's name of a communicator - hash
  Bijection batches;  // of one rank
  Bijection streams;  // of one rank
};

void compare_operation(std::vector<std::string>& found, const std::string& where, const LedgerLine& line,
                       const CaptureFile& file, const CaptureFile::CallRecord& record, Names& names) {
  const capture::Call& call = record.call;
  expect_same(found, where, "the count", elements_in(line), call.count);
  expect_same(found, where, "the type", element_of(line.number("type")), static_cast<int>(call.element));
  expect_same(found, where, "the reduction", reduction_of(line.number("op")), static_cast<int>(call.reduction));
  expect_same(found, where, "the root or peer", line.number("root"), call.peer);
  expect_same(found, where, "failure", line.number("result") != 0, (call.flags & capture::kFailed) != 0);
  const bool known_type = line.number("type") < 12;
  expect_same(found, where, "kNoCount", false, known_type && (call.flags & capture::kNoCount) != 0);
  const auto group = file.groups.find(call.group);
  if (group == file.groups.end()) {
    found.push_back(where + ": no such group");
    return;
  }
  expect_same(found, where, "the size", line.number("size"), group->second.size);
  expect_same(found, where, "the position", line.number("rank"), group->second.position);
  if (group->second.hash == 0 || !names.hashes.fits(line.fields.at("comm"), std::to_string(group->second.hash))) {
    found.push_back(fmt::format("{}: hash {} for {}", where, group->second.hash, line.fields.at("comm")));
  }
  if (!names.streams.fits(line.fields.at("stream"), std::to_string(call.stream)) ||
      (line.number("stream") == 0) != (call.stream == 0)) {
    found.push_back(fmt::format("{}: stream {} as {}", where, line.fields.at("stream"), call.stream));
  }
  if (!names.batches.fits(line.fields.at("group"), std::to_string(call.batch)) ||
      (line.number("group") == 0) != (call.batch == 0)) {
    found.push_back(fmt::format("{}: group {} as batch {}", where, line.fields.at("group"), call.batch));
  }
  const auto site = file.frames.find(call.site);
  if (site == file.frames.end() || site->second.address == 0 || file.text(site->second.file).empty()) {
    found.push_back(where + ": no call site");
  }
}

void compare_maker(std::vector<std::string>& found, const std::string& where, const LedgerLine& line,
                   const CaptureFile& file, const CaptureFile::CallRecord& record, Names& names) {
  const auto group = file.groups.find(record.call.group);
  if (group == file.groups.end()) {
    found.push_back(where + ": no such group");
    return;
  }
  expect_same(found, where, "the position", line.number("rank"), group->second.position);
  if (line.what == "init") expect_same(found, where, "the name", line.fields.at("name"), file.text(group->second.name));
  if (line.what != "split") expect_same(found, where, "the size", line.number("size"), group->second.size);
  if (!names.hashes.fits(line.fields.at("comm"), std::to_string(group->second.hash))) {
    found.push_back(fmt::format("{}: hash {} for {}", where, group->second.hash, line.fields.at("comm")));
  }
}

// Of a split there is a group for each child, with its parent, color and key.
void compare_children(std::vector<std::string>& found, const std::string& where, const RankResult& rank) {
  std::multiset<std::string> told;
  std::multiset<std::string> seen;
  for (const LedgerLine& line : rank.ledger) {
    if (line.what == "split" && line.number("color") != nccl::kNoColor) {
      told.insert(fmt::format("{} {}", line.number("color"), line.number("key")));
    }
  }
  for (const auto& [id, group] : rank.capture->groups) {
    if (group.parent == 0 || group.layer != static_cast<std::uint8_t>(capture::Layer::nccl_call)) continue;
    if (!rank.capture->groups.contains(group.parent)) found.push_back(where + ": a parent that is no group");
    bool is_shrunk = false;
    for (const auto& record : rank.capture->calls) {
      is_shrunk =
          is_shrunk || (record.call.group == id && record.call.kind == static_cast<std::uint8_t>(CallKind::new_group));
    }
    if (!is_shrunk) seen.insert(fmt::format("{} {}", group.color, group.key));
  }
  expect_same(found, where, "the children", fmt::format("{}", fmt::join(told, ", ")),
              fmt::format("{}", fmt::join(seen, ", ")));
}

std::vector<CaptureFile::CallRecord> calls_of(const CaptureFile& file, capture::Layer layer) {
  std::vector<CaptureFile::CallRecord> calls;
  for (const auto& record : file.calls) {
    if ((record.call.flags & capture::kLayerMask) != static_cast<std::uint8_t>(layer)) continue;
    if (record.call.kind != static_cast<std::uint8_t>(CallKind::unknown)) calls.push_back(record);
  }
  return calls;
}

// The key of a collective over all ranks: the n-th of its communicator.
using Meeting = std::pair<std::uint64_t, std::uint32_t>;

}  // namespace

std::vector<std::string> interposer_differences(const JobResult& job) {
  std::vector<std::string> found;
  Names names;
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    const RankResult& rank = job.ranks[number];
    const std::string who = fmt::format("rank {}", number);
    if (!rank.capture) {
      found.push_back(who + ": no capture");
      continue;
    }
    names.batches = {};
    names.streams = {};
    const auto calls = calls_of(*rank.capture, capture::Layer::nccl_call);
    std::size_t next = 0;
    for (const LedgerLine& line : rank.ledger) {
      if (!kKinds.contains(line.what)) continue;
      const std::string where = fmt::format("{}, call {} ({})", who, next, line.what);
      if (next == calls.size()) {
        found.push_back(where + ": not captured");
        break;
      }
      const auto& record = calls[next++];
      if (record.call.kind != static_cast<std::uint8_t>(kKinds.at(line.what))) {
        found.push_back(fmt::format("{}: captured as kind {}", where, record.call.kind));
        break;
      }
      const auto compare = is_maker(line.what) ? compare_maker : compare_operation;
      compare(found, where, line, *rank.capture, record, names);
    }
    if (next < calls.size()) found.push_back(fmt::format("{}: {} calls captured, {} made", who, calls.size(), next));
    compare_children(found, who, rank);
    const auto destroyed =
        std::count_if(rank.ledger.begin(), rank.ledger.end(), [](const auto& line) { return line.what == "destroy"; });
    const auto told = std::count_if(rank.capture->events.begin(), rank.capture->events.end(), [](const auto& event) {
      return event.code == static_cast<std::uint8_t>(capture::EventCode::group_destroyed);
    });
    expect_same(found, who, "destroyed communicators", destroyed, told);
  }
  return found;
}

std::vector<std::string> time_differences(const JobResult& job, bool with_times) {
  std::vector<std::string> found;
  std::map<Meeting, std::int64_t> last_issue;
  for (const RankResult& rank : job.ranks) {
    for (const auto& record : calls_of(*rank.capture, capture::Layer::nccl_call)) {
      if (is_transfer(static_cast<CallKind>(record.call.kind))) continue;
      auto& last = last_issue[{rank.capture->groups.at(record.call.group).hash, record.call.seq}];
      last = std::max(last, record.call.issue);
    }
  }
  std::size_t ended = 0;
  std::size_t held = 0;
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    const CaptureFile& file = *job.ranks[number].capture;
    std::map<long long, long long> over;
    std::vector<long long> operations;  // their numbers, as they were called
    for (const LedgerLine& line : job.ranks[number].ledger) {
      if (line.what == "over") over[line.number("number")] = line.number("time");
      if (is_operation(line.what)) operations.push_back(line.number("number"));
    }
    std::size_t place = 0;
    for (const auto& record : calls_of(file, capture::Layer::nccl_call)) {
      const capture::Call& call = record.call;
      const auto kind = static_cast<CallKind>(call.kind);
      if (kind == CallKind::new_group || kind == CallKind::split_group) continue;
      const long long operation = place < operations.size() ? operations[place++] : 0;
      if ((call.flags & capture::kFailed) != 0) continue;
      const capture::Group& group = file.groups.at(call.group);
      const bool is_silent = group.size == 1 || call.issue == 0 || (call.count == 0 && kind != CallKind::scatter);
      const std::string where = fmt::format("rank {}, record {}", number, record.id);
      const bool ends = with_times && !is_silent;
      expect_same(found, where, "kNoEnd", !ends, (call.flags & capture::kNoEnd) != 0);
      expect_same(found, where, "an end", ends, call.end != 0);
      if (!ends || call.end == 0) continue;
      ++ended;
      if (const auto found_over = over.find(operation); found_over != over.end()) {
        ++held;
        if (call.end < found_over->second) found.push_back(where + ": over before its last kernel");
      }
      if (call.start == 0 || call.start > call.end || call.issue > call.start)
        found.push_back(where + ": times out of order");
      const auto last = last_issue.find({group.hash, call.seq});
      if (!is_transfer(kind) && last->second > call.end) found.push_back(where + ": over before the last member came");
    }
  }
  if (with_times && (ended == 0 || held != ended))
    found.push_back(fmt::format("{} calls ended, {} by their kernels", ended, held));
  return found;
}

std::vector<std::string> profiler_differences(const JobResult& job, int minor) {
  const bool has_api_events = minor >= 28;
  std::vector<std::string> found;
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    const RankResult& rank = job.ranks[number];
    const std::string who = fmt::format("rank {}", number);
    if (!rank.capture) {
      found.push_back(who + ": no capture");
      continue;
    }
    std::vector<std::string> collectives, seen_collectives;
    std::multiset<std::string> transfers, seen_transfers;
    const auto say = [&](int kind, long long count, int element, long long root, int reduction = 0) {
      return fmt::format("{} x{} of {} at {} by {}", kind, count, element, root, minor == 23 ? reduction : 0);
    };
    for (const LedgerLine& line : rank.ledger) {
      if (!is_operation(line.what) || line.number("count") == 0 || line.number("size") == 1 ||
          line.number("result") != 0)
        continue;
      const auto kind = kKinds.at(line.what);
      const long long size = line.number("size");
      const long long root = line.number("root");
      const long long me = line.number("rank");
      const auto add = [&](CallKind way, long long peer) {
        transfers.insert(say(static_cast<int>(way), line.number("count"), element_of(line.number("type")), peer));
      };
      if (is_transfer(kind)) {
        add(kind, root);
      } else if (kind == CallKind::all_to_all || kind == CallKind::gather || kind == CallKind::scatter) {
        for (long long peer = 0; peer < size; ++peer) {
          const bool all = kind == CallKind::all_to_all;
          if (all || (kind == CallKind::gather ? peer == root : me == root)) add(CallKind::send, peer);
          if (all || (kind == CallKind::gather ? me == root : peer == root)) add(CallKind::recv, peer);
        }
      } else {
        const bool in_bytes = !has_api_events && (kind == CallKind::all_gather || kind == CallKind::broadcast);
        const auto bytes = static_cast<long long>(nccl::bytes_of(static_cast<int>(line.number("type"))));
        collectives.push_back(say(static_cast<int>(kind), in_bytes ? line.number("count") * bytes : elements_in(line),
                                  in_bytes ? 0 : element_of(line.number("type")), root,
                                  reduction_of(line.number("op"))));
      }
    }
    for (const auto& record : calls_of(*rank.capture, capture::Layer::nccl_profiler)) {
      const bool unsized = (record.call.flags & capture::kNoCount) != 0 &&
                           record.call.kind == static_cast<std::uint8_t>(CallKind::reduce_scatter);
      const auto size = static_cast<std::uint64_t>(job.ranks.size());  // older releases do not tell it
      const auto text = say(record.call.kind, static_cast<long long>(record.call.count * (unsized ? size : 1)),
                            record.call.element, record.call.peer, record.call.reduction);
      if (is_transfer(static_cast<CallKind>(record.call.kind))) {
        seen_transfers.insert(text);
      } else {
        seen_collectives.push_back(text);
      }
    }
    if (!has_api_events) {  // in the order of their sizes
      std::sort(collectives.begin(), collectives.end());
      std::sort(seen_collectives.begin(), seen_collectives.end());
    }
    expect_same(found, who, "collectives", fmt::format("{}", fmt::join(collectives, "; ")),
                fmt::format("{}", fmt::join(seen_collectives, "; ")));
    expect_same(found, who, "transfers", fmt::format("{}", fmt::join(transfers, "; ")),
                fmt::format("{}", fmt::join(seen_transfers, "; ")));
  }
  return found;
}

std::vector<std::string> thread_differences(const JobResult& job) {
  std::vector<std::string> found;
  for (std::size_t number = 0; number < job.ranks.size(); ++number) {
    const RankResult& rank = job.ranks[number];
    std::multiset<std::size_t> told;
    std::multiset<std::size_t> seen;
    std::map<std::string, std::size_t> made;
    for (const LedgerLine& line : rank.ledger) {
      if (is_operation(line.what)) ++made[line.fields.at("comm")];
    }
    std::map<std::uint32_t, std::set<std::uint32_t>> numbers;  // by group: of its calls in it
    std::map<std::uint16_t, std::uint32_t> batches;            // the group that it belongs to
    for (const auto& record : calls_of(*rank.capture, capture::Layer::nccl_call)) {
      const capture::Call& call = record.call;
      if (call.kind == static_cast<std::uint8_t>(CallKind::new_group)) continue;
      if (!numbers[call.group].insert(call.seq).second)
        found.push_back(fmt::format("rank {}: seq {} twice", number, call.seq));
      if (call.batch != 0 && batches.try_emplace(call.batch, call.group).first->second != call.group) {
        found.push_back(fmt::format("rank {}: batch {} of two threads", number, call.batch));
      }
    }
    for (const auto& [name, count] : made) told.insert(count);
    for (const auto& [group, of_group] : numbers) {
      seen.insert(of_group.size());
      // The first is the call that made the communicator.
      if (*of_group.begin() != 2 || *of_group.rbegin() != of_group.size() + 1)
        found.push_back(fmt::format("rank {}: a gap", number));
    }
    expect_same(found, fmt::format("rank {}", number), "calls", fmt::format("{}", fmt::join(told, " ")),
                fmt::format("{}", fmt::join(seen, " ")));
    if (rank.capture->header.lost != 0) found.push_back(fmt::format("rank {}: lost records", number));
  }
  return found;
}

}  // namespace ddx::nccl_test
