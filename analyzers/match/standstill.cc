#include "analyzers/match/standstill.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzers/match/channels.h"
#include "analyzers/match/components.h"

namespace ddx::analyzers {
namespace {

using Kind = Standstill::Kind;
constexpr std::uint32_t kHost = 0xffffffff;  // in place of a row

// What stands on the streams of one program, and what its host waits for, by rows.
class Streams {
 public:
  Streams(const Trace& trace, const Program& program, bool stream_ordered)
      : trace_(trace), program_(program), stream_ordered_(stream_ordered) {
    for (std::uint32_t row = 0; row < program.size(); ++row) add(row);
  }

  std::vector<std::uint32_t> started() const {
    std::vector<std::uint32_t> rows;
    for (const auto& [key, stream] : streams_) rows.insert(rows.end(), stream.started.begin(), stream.started.end());
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  // What a call that is enqueued waits for: the calls that run on its stream, or else, where nothing does, those of the
  // first in its queue, which may wait for an earlier call of their communicator on another stream.
  std::vector<std::uint32_t> before(std::uint32_t row) const {
    const Stream& stream = streams_.at(key_of(row));
    if (!stream.started.empty()) return stream.started;
    const std::uint32_t first = stream.scheduled.front();
    if (first != row && !same_batch(first, row)) return {first};
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t part : stream.scheduled) {
      if (part != first && !same_batch(first, part)) break;
      if (!is_collective(kind(part))) continue;
      for (const auto& [key, other] : streams_) {
        for (const auto* list : {&other.started, &other.scheduled}) {
          for (const std::uint32_t earlier : *list) {
            if (earlier < part && key != key_of(row) && is_collective(kind(earlier)) &&
                program_.comm_slot(earlier) == program_.comm_slot(part)) {
              rows.push_back(earlier);
            }
          }
        }
      }
    }
    return rows;
  }

  std::vector<std::uint32_t> host_waits() const {
    if (stopped_) return {};
    if (host_row_) return joined_at(*host_row_);
    // At its end a rank waits for all that it issued.
    if (!more_to_come_) return all();
    const auto rows = all();
    if (rows.empty()) return {};
    // In the stream model a host that is too far ahead waits for the oldest.
    if (stream_ordered_) return {rows.front()};
    return {rows.back()};
  }

 private:
  struct Stream {
    std::vector<std::uint32_t> started, scheduled;
  };

  OpKind kind(std::uint32_t row) const { return trace_.signature(program_.signature(row)).kind; }

  std::uint64_t key_of(std::uint32_t row) const {
    const auto& stream = trace_.signature(program_.signature(row)).stream;
    return stream ? std::uint64_t{1} << 32 | *stream : program_.comm_slot(row).value_or(0);
  }

  bool same_batch(std::uint32_t a, std::uint32_t b) const {
    return program_.group(a) && program_.group(a) == program_.group(b);
  }

  void add(std::uint32_t row) {
    const Signature& s = trace_.signature(program_.signature(row));
    const OpState state = program_.state(row);
    if (s.async) async_.push_back(row);
    if (s.kind == OpKind::stop && state == OpState::completed) stopped_ = true;
    more_to_come_ = more_to_come_ || state == OpState::planned;
    if (!in_flight(program_.state(row))) return;
    if (is_collective(s.kind) || is_p2p(s.kind)) {
      Stream& stream = streams_[key_of(row)];
      (state == OpState::started ? stream.started : stream.scheduled).push_back(row);
    } else if (!takes_length(s.kind)) {
      host_row_ = row;
    }
  }

  // For what a host waits that stands in a wait, a host_sync or at the end of a group.
  std::vector<std::uint32_t> joined_at(std::uint32_t row) const {
    const Signature& s = trace_.signature(program_.signature(row));
    if (s.kind == OpKind::wait) {
      const bool known = s.handle && *s.handle < async_.size();
      return known && in_flight(program_.state(async_[*s.handle])) ? std::vector<std::uint32_t>{async_[*s.handle]}
                                                                   : std::vector<std::uint32_t>();
    }
    std::vector<std::uint32_t> rows = all();
    if (s.kind != OpKind::group_end) return rows;
    std::optional<std::uint32_t> group;
    for (std::uint32_t at = row; at-- > 0 && !group;) group = program_.group(at);
    std::erase_if(rows, [&](std::uint32_t at) {
      return program_.group(at) != group || trace_.signature(program_.signature(at)).async;
    });
    return rows;
  }

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> rows;
    for (const auto& [key, stream] : streams_) {
      rows.insert(rows.end(), stream.started.begin(), stream.started.end());
      rows.insert(rows.end(), stream.scheduled.begin(), stream.scheduled.end());
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  const Trace& trace_;
  const Program& program_;
  bool stream_ordered_;
  std::map<std::uint64_t, Stream> streams_;
  std::vector<std::uint32_t> async_;  // rows of asynchronous operations, by handle
  std::optional<std::uint32_t> host_row_;
  bool stopped_ = false, more_to_come_ = false;
};

class StandstillBuilder {
 public:
  StandstillBuilder(const JobView& job, const std::vector<Orphan>& orphans) : job_(job), orphans_(orphans) {}

  Standstill build() {
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
      index_of_[job_.ranks[rank].rank] = rank;
      for (const std::uint32_t row : streams(rank).started()) add_call(rank, row);
      point(rank, kHost);
    }
    add_partners();
    for (const auto& [place, id] : collectives_) add_absent(place, id);
    while (!fresh_.empty()) {
      const std::uint32_t id = fresh_.front();
      fresh_.pop_front();
      add_own(id);
    }
    for (auto& to : out_.waits_for) {
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    }
    return std::move(out_);
  }

 private:
  const Program& program(std::uint32_t rank) const { return job_.trace->program(*job_.ranks[rank].record); }

  const Streams& streams(std::uint32_t rank) {
    const RankRecord& record = *job_.ranks[rank].record;
    return streams_
        .try_emplace({record.program, record.stream_ordered}, *job_.trace, program(rank), record.stream_ordered)
        .first->second;
  }

  std::optional<RankView::Place> place_of(std::uint32_t rank, std::uint32_t row) const {
    const auto slot = program(rank).comm_slot(row);
    const auto& places = job_.ranks[rank].by_slot;
    if (!slot || *slot >= places.size() || places[*slot].group == RankView::kNoGroup) return std::nullopt;
    return places[*slot];
  }

  std::uint32_t new_point(Kind kind, std::uint32_t rank, std::uint32_t row) {
    const auto place = kind == Kind::host ? std::nullopt : place_of(rank, row);
    out_.points.push_back({kind, rank, row, place ? place->group : 0, place ? place->member : 0});
    out_.waits_for.emplace_back();
    return static_cast<std::uint32_t>(out_.points.size() - 1);
  }

  void add_call(std::uint32_t rank, std::uint32_t row) {
    const auto place = place_of(rank, row);
    if (!place) return;
    if (is_p2p(job_.trace->signature(program(rank).signature(row)).kind)) {
      points_[{rank, row}] = new_point(Kind::call, rank, row);
      return;
    }
    const CallPlace at{place->group, program(rank).seq(row).value_or(0)};
    const auto known = collectives_.find(at);
    const std::uint32_t id = known == collectives_.end() ? new_point(Kind::call, rank, row) : known->second;
    collectives_.emplace(at, id);
    points_[{rank, row}] = id;
  }

  // The point of a call that is queued or started, or of a host.
  std::uint32_t point(std::uint32_t rank, std::uint32_t row) {
    if (const auto at = points_.find({rank, row}); at != points_.end()) return at->second;
    const std::uint32_t id = new_point(row == kHost ? Kind::host : Kind::queued, rank, row);
    points_[{rank, row}] = id;
    fresh_.push_back(id);
    return id;
  }

  // Of what is queued, and of hosts.
  void add_own(std::uint32_t id) {
    const Standstill::Point at = out_.points[id];
    // A call that runs and has no place in its group.
    if (at.kind == Kind::queued && program(at.rank).state(at.row) == OpState::started) return;
    const auto rows = at.kind == Kind::host ? streams(at.rank).host_waits() : streams(at.rank).before(at.row);
    for (const std::uint32_t row : rows) {
      const std::uint32_t to = point(at.rank, row);
      out_.waits_for[id].push_back(to);
    }
  }

  // `call` waits for what `member` has to do: to come to the call, or to start it where `row` is enqueued.
  void wait_for(std::uint32_t call, const MemberView& member, std::optional<std::uint32_t> row) {
    if (!member.record || (row && member.program->state(*row) != OpState::scheduled)) return;
    const std::uint32_t to = point(index_of_.at(member.rank), row.value_or(kHost));
    out_.waits_for[call].push_back(to);
  }

  void add_absent(const CallPlace& place, std::uint32_t id) {
    for (const MemberView& member : job_.groups[place.group].members) {
      const Call* call = member.record ? member.call_at(place.seq) : nullptr;
      const bool issued = call && member.program->state(call->row) != OpState::planned;
      // Calls that a snapshot of a part does not hold are over.
      if (!issued && member.last_enqueued.value_or(0) >= place.seq) continue;
      wait_for(id, member, issued ? std::optional(call->row) : std::nullopt);
    }
  }

  void add_partners() {
    for (const GroupView& group : job_.groups) {
      for (const auto& [ends, channel] : channels_of(job_, group)) {
        const MemberView* sender = group.member_at(ends.first);
        const MemberView* receiver = group.member_at(ends.second);
        if (!sender || !receiver) continue;
        for (std::size_t i = 0; i < channel.sends.size(); ++i)
          add_partner(group, channel.sends[i], channel.recvs, i, *receiver);
        for (std::size_t i = 0; i < channel.recvs.size(); ++i)
          add_partner(group, channel.recvs[i], channel.sends, i, *sender);
      }
    }
  }

  void add_partner(const GroupView& group, const Posted& own, const std::vector<Posted>& partners, std::size_t i,
                   const MemberView& partner) {
    const auto at = points_.find({index_of_.at(group.members[own.member].rank), own.row});
    if (at == points_.end() || out_.points[at->second].kind != Kind::call) return;
    const auto index = static_cast<std::uint32_t>(&group - job_.groups.data());
    if (is_orphan(orphans_, index, own.member, own.row)) return;
    wait_for(at->second, partner, i < partners.size() ? std::optional(partners[i].row) : std::nullopt);
  }

  const JobView& job_;
  const std::vector<Orphan>& orphans_;
  Standstill out_;
  std::map<std::pair<ProgramId, bool>, Streams> streams_;
  std::map<RankId, std::uint32_t> index_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> points_;  // by rank and row
  std::map<CallPlace, std::uint32_t> collectives_;
  std::deque<std::uint32_t> fresh_;  // whose own waits are not entered
};

// One circle of points as waits of ranks.
class CircleBuilder {
 public:
  CircleBuilder(const JobView& job, const Standstill& all, const std::vector<std::uint32_t>& circle)
      : job_(job), all_(all), circle_(circle) {}

  HeldCircle build() {
    WaitGraph& graph = out_.graph;
    graph.ranks = job_.known.values();
    graph.waits_in.resize(graph.ranks.size());
    graph.awaited_in.resize(graph.ranks.size());
    std::map<std::uint32_t, std::set<std::uint32_t>> waiters;  // by call
    for (const std::uint32_t point : circle_) {
      if (kind(point) == Kind::call) continue;
      for (const std::uint32_t call : calls_behind(point)) waiters[call].insert(rank_of(point));
    }
    for (const auto& [call, ranks] : waiters) index_[call] = static_cast<std::uint32_t>(index_.size());
    for (const auto& [call, ranks] : waiters) add(call, ranks);
    out_.ranks.assign(ranks_.begin(), ranks_.end());
    return std::move(out_);
  }

 private:
  Kind kind(std::uint32_t point) const { return all_.points[point].kind; }
  bool inside(std::uint32_t point) const { return std::binary_search(circle_.begin(), circle_.end(), point); }
  std::uint32_t rank_of(std::uint32_t point) const {
    return out_.graph.index_of(job_.ranks[all_.points[point].rank].rank);
  }

  // The calls of the circle that a host, or what is queued, waits for on its own rank.
  std::set<std::uint32_t> calls_behind(std::uint32_t point) const {
    std::set<std::uint32_t> calls, seen{point};
    std::vector<std::uint32_t> left{point};
    while (!left.empty()) {
      const std::uint32_t at = left.back();
      left.pop_back();
      for (const std::uint32_t to : all_.waits_for[at]) {
        if (!inside(to)) continue;
        if (kind(to) == Kind::call)
          calls.insert(to);
        else if (seen.insert(to).second)
          left.push_back(to);
      }
    }
    return calls;
  }

  void add(std::uint32_t call, const std::set<std::uint32_t>& waiters) {
    Instance instance;
    const Standstill::Point& point = all_.points[call];
    const GroupView& group = job_.groups[point.group];
    instance.group = point.group;
    instance.waiters.assign(waiters.begin(), waiters.end());
    instance.member = point.member;
    instance.row = point.row;
    const MemberView& shown = group.members[point.member];
    const OpKind op = job_.trace->signature(shown.program->signature(point.row)).kind;
    instance.p2p = is_p2p(op);
    if (instance.p2p) {
      instance.partner_sends = op == OpKind::recv;
    } else {
      instance.seq = shown.program->seq(point.row).value_or(0);
      const RankId first = out_.graph.ranks[instance.waiters.front()];
      if (const MemberView* member = group.member_of(first)) {
        const Call* own = member->record ? member->call_at(instance.seq) : nullptr;
        if (own) {
          instance.member = static_cast<std::uint32_t>(member - group.members.data());
          instance.row = own->row;
        }
      }
    }
    std::set<std::uint32_t> missing;
    std::vector<CycleStep> held;
    for (const std::uint32_t to : all_.waits_for[call]) {
      if (!inside(to)) continue;
      missing.insert(rank_of(to));
      instance.partner_queued = instance.partner_queued || (instance.p2p && kind(to) == Kind::queued);
      for (const std::uint32_t next : calls_behind(to)) held.push_back({rank_of(to), index_.at(next)});
    }
    instance.missing.assign(missing.begin(), missing.end());
    ranks_.insert(waiters.begin(), waiters.end());
    add_instance(out_.graph, std::move(instance));
    out_.graph.held_in.push_back(std::move(held));
  }

  const JobView& job_;
  const Standstill& all_;
  const std::vector<std::uint32_t>& circle_;
  std::map<std::uint32_t, std::uint32_t> index_;  // of a call: its instance
  std::set<std::uint32_t> ranks_;
  HeldCircle out_;
};

}  // namespace

std::optional<Standstill> standstill_of(const JobView& job, const std::vector<Orphan>& orphans) {
  const bool known = std::all_of(job.ranks.begin(), job.ranks.end(), [](const RankView& view) {
    const RankRecord& record = *view.record;
    return record.snapshot && record.whole_program && record.timing.value_or(false);
  });
  return known ? std::optional(StandstillBuilder(job, orphans).build()) : std::nullopt;
}

std::vector<HeldCircle> held_circles(const JobView& job, const Standstill& standstill) {
  const auto next = [&](std::uint32_t point, std::size_t edge) -> std::optional<std::uint32_t> {
    const auto& to = standstill.waits_for[point];
    return edge < to.size() ? std::optional(to[edge]) : std::nullopt;
  };
  std::vector<HeldCircle> circles;
  for (const auto& points : components(standstill.points.size(), next)) {
    // Nothing waits for itself alone: a call waits for hosts and queues, and these for calls.
    if (points.size() > 1) circles.push_back(CircleBuilder(job, standstill, points).build());
  }
  std::sort(circles.begin(), circles.end(), [](const HeldCircle& a, const HeldCircle& b) { return a.ranks < b.ranks; });
  return circles;
}

RankSet held_up_by(const JobView& job, const Standstill& standstill, const RankSet& ranks) {
  std::vector<std::vector<std::uint32_t>> awaited_by(standstill.points.size());
  for (std::uint32_t point = 0; point < standstill.points.size(); ++point) {
    for (const std::uint32_t to : standstill.waits_for[point]) awaited_by[to].push_back(point);
  }
  std::vector<bool> reached(standstill.points.size(), false);
  std::vector<std::uint32_t> left;
  std::vector<RankId> held;
  for (std::uint32_t point = 0; point < standstill.points.size(); ++point) {
    const bool its_own = standstill.points[point].kind != Kind::call;
    if (!its_own || !ranks.contains(job.ranks[standstill.points[point].rank].rank)) continue;
    reached[point] = true;
    left.push_back(point);
  }
  while (!left.empty()) {
    const std::uint32_t at = left.back();
    left.pop_back();
    for (const std::uint32_t from : awaited_by[at]) {
      if (reached[from]) continue;
      reached[from] = true;
      left.push_back(from);
      if (standstill.points[from].kind != Kind::call) held.push_back(job.ranks[standstill.points[from].rank].rank);
    }
  }
  return RankSet(std::move(held)).without(ranks);
}

}  // namespace ddx::analyzers
