#include "analyzers/match/job_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "traces/model/group_label.h"

namespace ddx::analyzers {
namespace {

using GroupKey = std::pair<StringId, std::vector<RankId>>;

// Of two records of one rank the better: the one that goes on longer.
bool tells_more(const Trace& trace, const RankRecord& a, const RankRecord& b) {
  const auto weight = [&](const RankRecord& record) {
    const Program& program = trace.program(record);
    Nanos last = INT64_MIN;
    if (program.size() > 0) last = program.issue(program.size() - 1).value_or(INT64_MIN);
    return std::tuple(last, program.size());
  };
  return weight(a) > weight(b);
}

struct Picked {
  std::map<RankId, const RankRecord*> best;
  RankSet outdated;
};

Picked pick_records(const Trace& trace, const RecordChoice& choice) {
  Picked picked;
  std::vector<RankId> outdated;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const RankRecord& record = trace.ranks[i];
    if (!record.rank || kind_of(record) != choice.kind) continue;
    if (choice.backend && !record.backend.empty() && record.backend != *choice.backend) continue;
    if (i < choice.outdated.size() && choice.outdated[i]) {
      outdated.push_back(*record.rank);
      continue;
    }
    const auto [at, fresh] = picked.best.try_emplace(*record.rank, &record);
    if (fresh) continue;
    // A record that names its backend is of this one; of equal ones that which tells more.
    const bool named = !record.backend.empty(), best_named = !at->second->backend.empty();
    const bool better = named == best_named ? tells_more(trace, record, *at->second) : named;
    if (better) at->second = &record;
  }
  RankSet left(std::move(outdated));
  std::vector<RankId> current;
  for (const auto& [rank, record] : picked.best) current.push_back(rank);
  picked.outdated = left.without(RankSet(std::move(current)));
  return picked;
}

// A member list that a record lacks is taken from the only other list of that name, if there is exactly one.
std::map<StringId, const std::vector<RankId>*> only_member_lists(const Trace& trace) {
  std::map<StringId, const std::vector<RankId>*> lists;
  for (const Communicator& communicator : trace.communicators()) {
    if (communicator.members.empty()) continue;
    const auto [at, fresh] = lists.try_emplace(communicator.name, &communicator.members);
    if (!fresh && at->second && *at->second != communicator.members) at->second = nullptr;
  }
  return lists;
}

class Builder {
 public:
  Builder(const Evidence& evidence, const RecordChoice& choice)
      : evidence_(evidence), trace_(evidence.trace), choice_(choice) {}

  JobView build() {
    job_.evidence = &evidence_;
    job_.trace = &trace_;
    only_lists_ = only_member_lists(trace_);
    Picked picked = pick_records(trace_, choice_);
    job_.outdated = std::move(picked.outdated);
    for (const auto& [rank, record] : picked.best) add_record(rank, *record);
    if (choice_.kind == RecordKind::dumps) add_unused_groups(picked.best);
    for (GroupView& group : job_.groups) finish_group(group);
    collect_ranks();
    mark_behind();
    return std::move(job_);
  }

 private:
  std::uint32_t group_of(CommId comm) {
    if (const auto at = comm_index_.find(comm); at != comm_index_.end()) return at->second;
    const std::uint32_t index = new_or_same_group(comm);
    comm_index_.emplace(comm, index);
    return index;
  }

  std::uint32_t new_or_same_group(CommId comm) {
    const Communicator& communicator = trace_.communicator(comm);
    GroupKey key{communicator.name, communicator.members};
    if (key.second.empty()) {
      const auto at = only_lists_.find(communicator.name);
      if (at != only_lists_.end() && at->second) key.second = *at->second;
    }
    const auto [at, fresh] = group_index_.try_emplace(std::move(key), static_cast<std::uint32_t>(job_.groups.size()));
    if (!fresh) return at->second;
    GroupView group;
    group.label = group_label(trace_, communicator);
    group.name = std::string(trace_.text(communicator.name));
    group.synthesized = communicator.synthesized;
    group.members_known = !at->first.second.empty();
    group.declared_size = communicator.declared_size;
    const auto& members = at->first.second;
    group.members.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      group.members[i].rank = members[i];
      group.members[i].position = static_cast<std::uint32_t>(i);
      member_index_[{at->second, members[i]}] = static_cast<std::uint32_t>(i);
    }
    job_.groups.push_back(std::move(group));
    return at->second;
  }

  // The record's place in a group; a record that is not on the member list gets none.
  RankView::Place place_of(RankId rank, CommId comm, std::uint32_t position) {
    const std::uint32_t index = group_of(comm);
    GroupView& group = job_.groups[index];
    const auto at = member_index_.find({index, rank});
    if (at != member_index_.end()) return {index, at->second};
    if (group.members_known) return {RankView::kNoGroup, 0};
    const auto member = static_cast<std::uint32_t>(group.members.size());
    member_index_[{index, rank}] = member;
    MemberView view;
    view.rank = rank;
    view.position = position == RankRecord::kNoPosition ? member : position;
    group.members.push_back(std::move(view));
    return {index, member};
  }

  void add_record(RankId rank, const RankRecord& record) {
    RankView view{rank, &record, {}};
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const auto position = slot < record.comm_rank.size() ? record.comm_rank[slot] : RankRecord::kNoPosition;
      const auto place = place_of(rank, record.comms[slot], position);
      view.by_slot.push_back(place);
      if (place.group == RankView::kNoGroup) continue;
      MemberView& member = job_.groups[place.group].members[place.member];
      member.record = &record;
      member.program = &trace_.program(record);
      // gloo counts its sends and receives with the collectives; NCCL does not.
      const bool collectives_only = record.backend != "gloo";
      if (slot < record.progress.size()) {
        member.limit = record.progress[slot].limit;
        member.in_all = record.progress[slot].in_program.value_or(0);
      }
      if (collectives_only && slot < record.progress.size()) member.last_enqueued = record.progress[slot].last_enqueued;
    }
    add_rows(record, view);
    job_.ranks.push_back(std::move(view));
  }

  void add_rows(const RankRecord& record, const RankView& view) {
    const Program& program = trace_.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const auto slot = program.comm_slot(row);
      if (!slot || *slot >= view.by_slot.size()) continue;
      const auto place = view.by_slot[*slot];
      if (place.group == RankView::kNoGroup) continue;
      MemberView& member = job_.groups[place.group].members[place.member];
      const OpKind kind = trace_.signature(program.signature(row)).kind;
      if (is_p2p(kind)) {
        member.p2p.push_back(static_cast<std::uint32_t>(row));
      } else if (is_collective(kind) || kind == OpKind::unknown) {
        add_call(member, program, static_cast<std::uint32_t>(row));
      }
    }
  }

  // A recorder lists a group from its first use on: a member whose dump does not have it has made no call there, unless
  // it has one of that name with other members.
  void add_unused_groups(const std::map<RankId, const RankRecord*>& records) {
    for (GroupView& group : job_.groups) {
      for (MemberView& member : group.members) {
        const auto at = records.find(member.rank);
        if (member.record || at == records.end()) continue;
        member.record = at->second;
        member.program = &trace_.program(*at->second);
        member.reach_known = !binds_name(*at->second, group.name);
      }
    }
  }

  bool binds_name(const RankRecord& record, const std::string& name) const {
    return std::any_of(record.comms.begin(), record.comms.end(),
                       [&](CommId comm) { return trace_.text(trace_.communicator(comm).name) == name; });
  }

  static void add_call(MemberView& member, const Program& program, std::uint32_t row) {
    const auto seq = program.seq(row);
    if (!seq) return;
    if (!member.calls.empty() && member.calls.back().seq == *seq) {
      member.calls.back().rows = row - member.calls.back().row + 1;
      return;
    }
    member.calls.push_back({*seq, row, 1});
  }

  static bool planned(const MemberView& member, std::uint32_t row) {
    return member.program->state(row) == OpState::planned;
  }

  static void finish_group(GroupView& group) {
    std::sort(group.members.begin(), group.members.end(),
              [](const MemberView& a, const MemberView& b) { return a.position < b.position; });
    for (std::uint32_t i = 0; i < group.members.size(); ++i) group.by_rank.push_back(i);
    std::stable_sort(group.by_rank.begin(), group.by_rank.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return group.members[a].rank < group.members[b].rank; });
    for (MemberView& member : group.members) {
      if (!member.program) continue;
      std::stable_sort(member.calls.begin(), member.calls.end(),
                       [](const Call& a, const Call& b) { return a.seq < b.seq; });
      while (member.issued < member.calls.size() && !planned(member, member.calls[member.issued].row)) ++member.issued;
      while (member.p2p_issued < member.p2p.size() && !planned(member, member.p2p[member.p2p_issued])) {
        ++member.p2p_issued;
      }
      member.in_all = std::max<std::uint64_t>(member.in_all, member.calls.size());
      if (!member.calls.empty()) member.first_known = member.calls.front().seq;
      const bool counted = member.issued > 0 || member.last_enqueued;
      if (member.record->tail_lost || (member.record->head_lost && !counted)) member.reach_known = false;
      const std::uint64_t by_rows = member.issued > 0 ? member.calls[member.issued - 1].seq : 0;
      member.last_enqueued = std::max(member.last_enqueued.value_or(0), by_rows);
    }
  }

  void collect_ranks() {
    std::vector<RankId> seen, known;
    for (const RankView& view : job_.ranks) seen.push_back(view.rank);
    known = seen;
    known.insert(known.end(), job_.outdated.begin(), job_.outdated.end());
    for (const GroupView& group : job_.groups) {
      for (const MemberView& member : group.members) known.push_back(member.rank);
    }
    if (trace_.world_size && *trace_.world_size <= kLargestWorld) {
      for (std::uint32_t rank = 0; rank < *trace_.world_size; ++rank) known.emplace_back(rank);
    }
    job_.seen = RankSet(std::move(seen));
    job_.known = RankSet(std::move(known));
  }

  // No member completes such a call before every member has made it: a dump that does not reach it is older than the
  // other's, and what its rank did since is not in it.
  void mark_behind() {
    std::vector<RankId> behind;
    for (const GroupView& group : job_.groups) {
      const std::uint64_t together = completed_by_all(group);
      for (const MemberView& member : group.members) {
        const bool reaches = !member.record || !member.reach_known || member.last_enqueued.value_or(0) >= together;
        if (!reaches && member.record->snapshot && !member.record->whole_program) behind.push_back(member.rank);
      }
    }
    job_.behind = RankSet(std::move(behind));
    if (job_.behind.empty()) return;
    for (GroupView& group : job_.groups) {
      for (MemberView& member : group.members) {
        if (job_.behind.contains(member.rank)) member.reach_known = false;
      }
    }
  }

  // The last call that some member has completed, and that so every member has made.
  std::uint64_t completed_by_all(const GroupView& group) const {
    std::uint64_t together = 0;
    for (const MemberView& member : group.members) {
      if (!member.record || !member.record->snapshot || only_tells_over(*member.record)) continue;
      for (std::size_t i = member.issued; i-- > 0 && member.calls[i].seq > together;) {
        const Call& call = member.calls[i];
        const OpKind kind = trace_.signature(member.program->signature(call.row)).kind;
        if (synchronizes(kind) && member.program->state(call.row) == OpState::completed && member.completed(call)) {
          together = call.seq;
        }
      }
    }
    return together;
  }

  static constexpr std::uint32_t kLargestWorld = 1u << 24;

  const Evidence& evidence_;
  const Trace& trace_;
  const RecordChoice& choice_;
  JobView job_;
  std::map<StringId, const std::vector<RankId>*> only_lists_;
  std::map<CommId, std::uint32_t> comm_index_;
  std::map<GroupKey, std::uint32_t> group_index_;
  std::map<std::pair<std::uint32_t, RankId>, std::uint32_t> member_index_;
};

}  // namespace

const Call* MemberView::call_at(std::uint64_t seq) const {
  if (calls.empty() || seq < calls.front().seq || seq > calls.back().seq) return nullptr;
  // Nearly always without holes: the distance is the index.
  const std::size_t guess = seq - calls.front().seq;
  if (guess < calls.size() && calls[guess].seq == seq) return &calls[guess];
  const auto at = std::lower_bound(calls.begin(), calls.end(), seq,
                                   [](const Call& call, std::uint64_t wanted) { return call.seq < wanted; });
  return at != calls.end() && at->seq == seq ? &*at : nullptr;
}

bool only_tells_over(const RankRecord& record) {
  return record.snapshot && !record.whole_program && !record.stream_ordered;
}

bool MemberView::completed(const Call& call) const {
  for (std::uint32_t row = call.row; row < call.row + call.rows; ++row) {
    const OpState state = program->state(row);
    if (ddx::in_flight(state) || state == OpState::planned) return false;
  }
  return true;
}

bool MemberView::in_flight(const Call& call) const {
  for (std::uint32_t row = call.row; row < call.row + call.rows; ++row) {
    if (in_flight(row)) return true;
  }
  return false;
}

bool MemberView::in_flight(std::uint32_t row) const { return ddx::in_flight(program->state(row)); }

RankSet GroupView::ranks() const {
  std::vector<RankId> all;
  all.reserve(members.size());
  for (const MemberView& member : members) all.push_back(member.rank);
  return RankSet(std::move(all));
}

const MemberView* GroupView::member_of(RankId rank) const {
  const auto at = std::lower_bound(by_rank.begin(), by_rank.end(), rank,
                                   [&](std::uint32_t index, RankId wanted) { return members[index].rank < wanted; });
  return at != by_rank.end() && members[*at].rank == rank ? &members[*at] : nullptr;
}

const MemberView* GroupView::member_at(std::uint32_t position) const {
  // Nearly always all members are known, and the position is the index.
  if (position < members.size() && members[position].position == position) return &members[position];
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const MemberView& member) { return member.position == position; });
  return at == members.end() ? nullptr : &*at;
}

const RankView* JobView::view_of(RankId rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const RankView& view, RankId wanted) { return view.rank < wanted; });
  return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

std::size_t GroupView::with_record() const {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [](const MemberView& member) { return member.record != nullptr; }));
}

JobView build_job_view(const Evidence& evidence, const RecordChoice& choice) {
  return Builder(evidence, choice).build();
}

bool synchronizes(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::reduce_scatter ||
         kind == OpKind::all_to_all || kind == OpKind::barrier;
}

bool trouble_in_logs(const Evidence& evidence) {
  return std::any_of(evidence.events.begin(), evidence.events.end(), [](const LogEvent& event) {
    return std::holds_alternative<WatchdogTimeout>(event.fact) || std::holds_alternative<ProcessEnd>(event.fact) ||
           std::holds_alternative<ElasticFailure>(event.fact) || std::holds_alternative<NetSocketError>(event.fact) ||
           std::holds_alternative<NetCompletionError>(event.fact);
  });
}

std::string describe_call(const Trace& trace, const RankRecord& record, std::uint32_t row) {
  const Signature& signature = trace.signature(trace.program(record).signature(row));
  std::string text(signature.kind == OpKind::unknown ? trace.text(signature.name) : name_of(signature.kind));
  if (signature.type_in != DataType::unknown && signature.kind != OpKind::barrier) {
    text += fmt::format(" {}", name_of(signature.type_in));
  }
  if (signature.count_in && signature.kind != OpKind::barrier)
    text += fmt::format(" x {}", format_count(*signature.count_in));
  const auto peer = trace.peer(record, signature);
  if (peer && is_rooted(signature.kind)) text += fmt::format(" root={}", *peer);
  if (peer && signature.kind == OpKind::send) text += fmt::format(" to {}", *peer);
  if (peer && signature.kind == OpKind::recv) text += fmt::format(" from {}", *peer);
  if (signature.redop != RedOp::unknown) text += fmt::format(" {}", name_of(signature.redop));
  if (signature.kind == OpKind::new_group) {
    std::vector<RankId> ranks;
    for (std::int32_t rank : signature.members) ranks.emplace_back(rank);
    text += " " + RankSet(std::move(ranks)).text(8);
  }
  return text;
}

std::string describe_call(const JobView& job, const MemberView& member, std::uint32_t row) {
  return describe_call(*job.trace, *member.record, row);
}

std::string call_site_text(const JobView& job, const MemberView& member, std::uint32_t row) {
  const auto id = member.program->call_site(row);
  if (!id) return "";
  const auto& frames = job.trace->call_site(*id).frames;
  // The innermost frame that is the user's own: not inside a library.
  const auto library = [&](const Frame& frame) {
    const auto file = job.trace->text(frame.file);
    return file.find("site-packages/") != std::string_view::npos ||
           file.find("dist-packages/") != std::string_view::npos ||
           file.find("torch/distributed/") != std::string_view::npos ||
           file.find("/python3.") != std::string_view::npos || file.starts_with("<");
  };
  const auto own = std::find_if_not(frames.begin(), frames.end(), library);
  if (frames.empty()) return "";
  const Frame& frame = own == frames.end() ? frames.front() : *own;
  return fmt::format("{}:{} in {}", job.trace->text(frame.file), frame.line, job.trace->text(frame.function));
}

EvidenceLine call_evidence(const JobView& job, const GroupView& group, const MemberView& member, std::uint32_t row) {
  EvidenceLine line;
  line.path = job.evidence->path(member.record->input);
  line.text = fmt::format("rank {}: {} (group {}", member.rank.value, describe_call(job, member, row), group.label);
  if (const auto seq = member.program->seq(row)) line.text += fmt::format(", seq {}", *seq);
  line.text += ")";
  const OpState state = member.program->state(row);
  if (state != OpState::unknown) line.text += fmt::format(", {}", name_of(state));
  if (const std::string site = call_site_text(job, member, row); !site.empty()) line.text += ", at " + site;
  return line;
}

}  // namespace ddx::analyzers
