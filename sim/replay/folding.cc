#include "sim/replay/folding.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"

namespace ddx::sim {
namespace {

// Beyond these a partition that still grows is given up: chains of ranks that only their place tells apart.
constexpr int kMaxRounds = 64;

// Two independent hashes of one thing: 128 bits, so that things of one hash may be taken for equal.
struct Mark {
  std::uint64_t a = ~hash_key(), b = hash_key() + 1;  // not 0, which a word of 0 would leave as it is
  void add(std::uint64_t word) {
    a = hash_mix(a, word, key());
    b = hash_mix(b, word, other_key());
  }
  void add(const Mark& mark) {
    add(mark.a);
    add(mark.b);
  }
  // For members of a set that has no order.
  void add_unordered(const Mark& mark) {
    a += mark.a;
    b += mark.b;
  }
  bool operator==(const Mark&) const = default;

 private:
  static std::uint64_t key() { return hash_key(); }
  static std::uint64_t other_key() { return hash_key() * 0x2545f4914f6cdd1d | 1; }
};

struct MarkHash {
  std::size_t operator()(const Mark& mark) const { return mark.a; }
};

// Numbers things by their marks, in order of first appearance.
class Numbering {
 public:
  std::uint32_t of(const Mark& mark) {
    return numbers_.try_emplace(mark, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<Mark, std::uint32_t, MarkHash> numbers_;
};

struct ChannelEnd {
  std::uint32_t record = kNoOp;
  std::uint32_t endpoint = kNoOp;
};

struct ChannelKey {
  std::uint32_t comm;
  std::int32_t from, to;
  bool operator==(const ChannelKey&) const = default;
};

struct ChannelKeyHash {
  std::size_t operator()(const ChannelKey& key) const {
    RowHash hash;
    hash.add(std::uint64_t{key.comm});
    hash.add(std::uint64_t{static_cast<std::uint32_t>(key.from)} << 32 | static_cast<std::uint32_t>(key.to));
    return hash.value();
  }
};

class Folder {
 public:
  Folder(const Trace& trace, const std::vector<UnrolledProgram>& programs, const FoldOptions& options,
         std::string& refusal)
      : trace_(trace), programs_(programs), options_(options), refusal_(refusal) {}
  Folding run();

 private:
  void find_channels();
  void label_bindings();
  std::uint32_t join_channel(const ChannelKey& key, bool sends, ChannelEnd end);
  std::vector<std::uint32_t> refine();
  std::vector<std::uint32_t> apart() const;
  Mark first_mark(std::uint32_t record) const;
  void mark_bindings(const std::vector<std::uint32_t>& classes);
  void number_classes(std::vector<std::uint32_t> classes);
  void number_comms();
  void number_channels();
  void number_resources();

  // Whether any class has several records; else nothing bound to them is taken for alike.
  bool merged() const { return options_.merge && out_.representative.size() < trace_.ranks.size(); }
  std::uint32_t size_of_comm(std::uint32_t comm) const { return trace_.communicators()[comm].size(); }
  bool is_member(const RankRecord& record, std::size_t slot) const {
    return record.comm_rank[slot] < size_of_comm(record.comms[slot].value);
  }
  const UnrolledProgram& program(std::uint32_t record) const { return programs_[trace_.ranks[record].program.value]; }

  const Trace& trace_;
  const std::vector<UnrolledProgram>& programs_;
  const FoldOptions& options_;
  std::string& refusal_;

  std::vector<std::uint64_t> endpoint_base_;  // by record, into channel_of_
  std::vector<std::uint32_t> channel_of_;
  std::vector<ChannelEnd> senders_, receivers_;  // by channel
  std::unordered_map<ChannelKey, std::uint32_t, ChannelKeyHash> channel_index_;
  std::vector<std::uint64_t> comm_labels_, channel_labels_;
  std::vector<Mark> comm_marks_, channel_marks_, resource_marks_;
  Folding out_;
};

// One row an endpoint that the rank's program uses.
void Folder::find_channels() {
  std::uint64_t rows = 0;
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    endpoint_base_.push_back(rows);
    rows += program(i).endpoints.size();
  }
  channel_of_.assign(rows, kNoOp);
  for (std::uint32_t i = 0; i < trace_.ranks.size() && refusal_.empty(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    const auto& endpoints = program(i).endpoints;
    for (std::uint32_t e = 0; e < endpoints.size(); ++e) {
      const Endpoint& endpoint = endpoints[e];
      const CommId comm = record.comms[endpoint.comm_slot];
      const std::int32_t peer = record.peers[endpoint.peer_slot];
      if (peer < 0 || static_cast<std::uint32_t>(peer) >= size_of_comm(comm.value)) continue;
      if (!is_member(record, endpoint.comm_slot)) continue;
      const auto own = static_cast<std::int32_t>(record.comm_rank[endpoint.comm_slot]);
      const ChannelKey key{comm.value, endpoint.sends ? own : peer, endpoint.sends ? peer : own};
      channel_of_[endpoint_base_[i] + e] = join_channel(key, endpoint.sends, {i, e});
    }
  }
  channel_index_.clear();
}

std::uint32_t Folder::join_channel(const ChannelKey& key, bool sends, ChannelEnd end) {
  const auto [at, fresh] = channel_index_.try_emplace(key, static_cast<std::uint32_t>(senders_.size()));
  if (fresh) {
    senders_.emplace_back();
    receivers_.emplace_back();
  }
  ChannelEnd& mine = (sends ? senders_ : receivers_)[at->second];
  if (mine.record != kNoOp) {
    refusal_ = fmt::format("rank {} names one peer by two slots", trace_.ranks[end.record].rank->value);
  }
  mine = end;
  return at->second;
}

void Folder::label_bindings() {
  if (!options_.merge) return;
  if (options_.comm_label) {
    for (const Communicator& communicator : trace_.communicators()) {
      comm_labels_.push_back(options_.comm_label(communicator));
    }
  }
  if (!options_.channel_label) return;
  for (std::size_t x = 0; x < senders_.size(); ++x) {
    const bool both = senders_[x].record != kNoOp && receivers_[x].record != kNoOp;
    channel_labels_.push_back(
        both ? options_.channel_label(*trace_.ranks[senders_[x].record].rank, *trace_.ranks[receivers_[x].record].rank)
             : 0);
  }
}

// What tells records apart by themselves. Roots are compared between members by position, so ranks of one class have
// the same; and so are the places in split lists.
Mark Folder::first_mark(std::uint32_t i) const {
  const RankRecord& record = trace_.ranks[i];
  const UnrolledProgram& own = program(i);
  Mark mark;
  mark.add(record.program.value);
  mark.add((record.stream_ordered ? 1 : 0) | (record.sends_end_locally ? 2 : 0));
  mark.add(options_.labels.empty() ? 0 : options_.labels[i]);
  mark.add(record.comms.size());
  for (std::size_t slot = 0; slot < record.comms.size(); ++slot) mark.add(is_member(record, slot) ? 1 : 0);
  for (const Root& root : own.roots) {
    const bool bound = root.peer_slot < record.peers.size() && root.comm_slot < record.comm_rank.size();
    const auto peer = bound ? static_cast<std::uint32_t>(record.peers[root.peer_slot]) : 0;
    mark.add(peer);
    // Where links are shared, a root takes other parts of them than the others do, and so does the end of its chain.
    if (options_.resource_kinds == 0) continue;
    const std::uint32_t own_place = bound ? record.comm_rank[root.comm_slot] : 0;
    const std::uint32_t size = bound ? size_of_comm(record.comms[root.comm_slot].value) : 0;
    mark.add(!bound ? 0 : own_place == peer ? 1 : own_place == (peer == 0 ? size : peer) - 1 ? 2 : 0);
  }
  for (const std::uint16_t slot : own.split_slots) {
    mark.add(slot < record.comm_rank.size() ? record.comm_rank[slot] : 0);
  }
  return mark;
}

// Marks communicators and channels by the classes of the ranks bound to them.
void Folder::mark_bindings(const std::vector<std::uint32_t>& classes) {
  for (std::uint32_t c = 0; c < comm_marks_.size(); ++c) {
    comm_marks_[c] = {};
    comm_marks_[c].add(size_of_comm(c));
    comm_marks_[c].add(comm_labels_.empty() ? 0 : comm_labels_[c]);
  }
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      Mark edge;
      edge.add(std::uint64_t{classes[i]} << 32 | slot);
      comm_marks_[record.comms[slot].value].add_unordered(edge);
    }
  }
  std::fill(resource_marks_.begin(), resource_marks_.end(), Mark{});
  for (std::size_t row = 0; row < options_.resources.size(); ++row) {
    if (options_.resources[row] == kNoResource) continue;
    Mark edge;
    edge.add(std::uint64_t{classes[row / options_.resource_kinds]} << 32 | row % options_.resource_kinds);
    resource_marks_[options_.resources[row]].add_unordered(edge);
  }
  const auto add_end = [&](Mark& mark, ChannelEnd end) {
    mark.add(end.record == kNoOp ? ~std::uint64_t{0} : std::uint64_t{classes[end.record]} << 32 | end.endpoint);
  };
  for (std::size_t x = 0; x < channel_marks_.size(); ++x) {
    channel_marks_[x] = {};
    channel_marks_[x].add(channel_labels_.empty() ? 0 : channel_labels_[x]);
    add_end(channel_marks_[x], senders_[x]);
    add_end(channel_marks_[x], receivers_[x]);
  }
}

std::vector<std::uint32_t> Folder::apart() const {
  std::vector<std::uint32_t> classes(trace_.ranks.size());
  for (std::uint32_t i = 0; i < classes.size(); ++i) classes[i] = i;
  return classes;
}

std::vector<std::uint32_t> Folder::refine() {
  if (!options_.merge) return apart();
  const std::size_t records = trace_.ranks.size();
  std::vector<std::uint32_t> classes(records);
  Numbering first;
  for (std::uint32_t i = 0; i < records; ++i) classes[i] = first.of(first_mark(i));
  std::uint32_t count = first.size();
  for (int round = 0; round < kMaxRounds; ++round) {
    mark_bindings(classes);
    Numbering next;
    std::vector<std::uint32_t> finer(records);
    for (std::uint32_t i = 0; i < records; ++i) {
      Mark mark;
      mark.add(classes[i]);
      for (const CommId comm : trace_.ranks[i].comms) mark.add(comm_marks_[comm.value]);
      for (std::size_t e = 0; e < program(i).endpoints.size(); ++e) {
        const std::uint32_t channel = channel_of_[endpoint_base_[i] + e];
        mark.add(channel == kNoOp ? Mark{} : channel_marks_[channel]);
      }
      for (std::uint32_t k = 0; k < options_.resource_kinds; ++k) {
        const std::uint32_t resource = options_.resources[std::size_t{i} * options_.resource_kinds + k];
        mark.add(resource == kNoResource ? Mark{} : resource_marks_[resource]);
      }
      finer[i] = next.of(mark);
    }
    classes = std::move(finer);
    if (next.size() == count) return classes;
    count = next.size();
    if (count > records - records / 4) break;
  }
  return apart();
}

void Folder::number_classes(std::vector<std::uint32_t> classes) {
  out_.class_of = std::move(classes);
  for (std::uint32_t i = 0; i < out_.class_of.size(); ++i) {
    // Classes are numbered in order of their first records.
    if (out_.class_of[i] == out_.representative.size()) out_.representative.push_back(i);
  }
  std::uint64_t slots = 0, endpoints = 0;
  for (const std::uint32_t record : out_.representative) {
    out_.slot_base.push_back(slots);
    out_.endpoint_base.push_back(endpoints);
    slots += trace_.ranks[record].comms.size();
    endpoints += program(record).endpoints.size();
  }
  out_.comm.resize(slots);
  out_.weight.assign(slots, 0);
  out_.channel.assign(endpoints, kNoOp);
}

void Folder::number_comms() {
  std::vector<std::uint32_t> number(comm_marks_.size(), kNoOp);
  Numbering numbering;
  for (std::uint32_t c = 0; c < comm_marks_.size(); ++c) {
    Mark mark = comm_marks_[c];
    if (!merged()) mark.add(c);
    number[c] = numbering.of(mark);
    if (number[c] == out_.comm_size.size()) {
      out_.comm_size.push_back(size_of_comm(c));
      out_.comm_representative.emplace_back(c);
    }
  }
  for (std::uint32_t c = 0; c < out_.representative.size(); ++c) {
    const auto& comms = trace_.ranks[out_.representative[c]].comms;
    for (std::size_t slot = 0; slot < comms.size(); ++slot) {
      out_.comm[out_.slot_base[c] + slot] = number[comms[slot].value];
    }
  }
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const CommId comm = record.comms[slot];
      if (out_.comm_representative[number[comm.value]] != comm || !is_member(record, slot)) continue;
      ++out_.weight[out_.slot_base[out_.class_of[i]] + slot];
    }
  }
}

void Folder::number_channels() {
  std::vector<std::uint32_t> number(senders_.size(), kNoOp);
  Numbering numbering;
  for (std::uint32_t x = 0; x < number.size(); ++x) number[x] = merged() ? numbering.of(channel_marks_[x]) : x;
  out_.channels = merged() ? numbering.size() : static_cast<std::uint32_t>(number.size());
  for (std::uint32_t c = 0; c < out_.representative.size(); ++c) {
    const std::uint32_t record = out_.representative[c];
    for (std::size_t e = 0; e < program(record).endpoints.size(); ++e) {
      const std::uint32_t channel = channel_of_[endpoint_base_[record] + e];
      if (channel != kNoOp) out_.channel[out_.endpoint_base[c] + e] = number[channel];
    }
  }
}

void Folder::number_resources() {
  const std::uint32_t kinds = options_.resource_kinds;
  if (options_.resources.empty()) return;
  std::vector<std::uint32_t> number(resource_marks_.size()), first;
  Numbering numbering;
  for (std::uint32_t r = 0; r < number.size(); ++r) {
    number[r] = merged() ? numbering.of(resource_marks_[r]) : r;
    if (number[r] == first.size()) first.push_back(r);
  }
  out_.resources = static_cast<std::uint32_t>(first.size());
  out_.resource.resize(out_.representative.size() * std::size_t{kinds});
  out_.resource_weight.assign(out_.resource.size(), 0);
  for (std::size_t row = 0; row < out_.resource.size(); ++row) {
    const std::size_t record = out_.representative[row / kinds];
    const std::uint32_t resource = options_.resources[record * kinds + row % kinds];
    out_.resource[row] = resource == kNoResource ? 0 : number[resource];
  }
  for (std::size_t row = 0; row < options_.resources.size(); ++row) {
    const std::uint32_t resource = options_.resources[row];
    if (resource == kNoResource || first[number[resource]] != resource) continue;
    ++out_.resource_weight[std::size_t{out_.class_of[row / kinds]} * kinds + row % kinds];
  }
}

Folding Folder::run() {
  find_channels();
  if (!refusal_.empty()) return {};
  label_bindings();
  comm_marks_.resize(trace_.communicators().size());
  channel_marks_.resize(senders_.size());
  if (!options_.resources.empty()) {
    std::size_t most = 0;
    for (const std::uint32_t resource : options_.resources) {
      if (resource != kNoResource) most = std::max<std::size_t>(most, resource + std::size_t{1});
    }
    resource_marks_.resize(most);
  }
  number_classes(refine());
  mark_bindings(out_.class_of);
  number_comms();
  number_channels();
  number_resources();
  return std::move(out_);
}

}  // namespace

Folding fold(const Trace& trace, const std::vector<UnrolledProgram>& programs, const FoldOptions& options,
             std::string& refusal) {
  return Folder(trace, programs, options, refusal).run();
}

}  // namespace ddx::sim
