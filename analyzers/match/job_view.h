// JobView: the trace turned from "what each process recorded" into "what each communicator saw": per communicator and
// member the collective calls by sequence number and the sends and receives in order of issue. Built once; every
// analyzer of collectives reads it. Nothing here is a judgement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/match/record_choice.h"
#include "base/finding.h"
#include "base/rank_set.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// Rows of one program that share one sequence number of one communicator: one row, or the parts of a coalesced batch.
struct Call {
  std::uint32_t seq = 0;
  std::uint32_t row = 0;   // first row
  std::uint32_t rows = 1;  // consecutive among the member's rows of this communicator
};

struct MemberView {
  RankId rank;
  std::uint32_t position = 0;          // in the communicator
  const RankRecord* record = nullptr;  // null: no evidence of this rank
  const Program* program = nullptr;
  std::vector<Call> calls;         // collectives, ascending by seq, planned ones last
  std::uint64_t in_all = 0;        // how many a whole program holds: `calls` may be a part of it
  std::size_t issued = 0;          // calls[0, issued) were enqueued, the rest is planned
  std::vector<std::uint32_t> p2p;  // rows of sends and receives in order of issue, planned ones last
  std::size_t p2p_issued = 0;
  std::optional<std::uint64_t> last_enqueued;  // sequence number; 0: none yet; absent: unknown
  // False: it may have made calls behind the last one known here. Its dump was cut, or is older than those of others,
  // or its ring lost all calls of this group, or it knows the group by another member list.
  bool reach_known = true;
  std::optional<CallLimit> limit;            // how long its latest collectives may take
  std::optional<std::uint64_t> first_known;  // calls before it may be lost; absent: no call known

  const Call* call_at(std::uint64_t seq) const;  // null: not retained or not reached
  bool completed(const Call& call) const;
  bool in_flight(const Call& call) const;  // scheduled or started
  bool in_flight(std::uint32_t row) const;
};

struct GroupView {
  std::string label;           // for people: "default_pg", "mesh_tp (7)"
  std::string name;            // the communicator's own name
  bool members_known = false;  // the member list was recorded (else: those seen)
  std::optional<std::uint32_t> declared_size;
  bool synthesized = false;
  std::vector<MemberView> members;     // by position
  std::vector<std::uint32_t> by_rank;  // indices of `members`, ascending by rank

  RankSet ranks() const;
  const MemberView* member_of(RankId rank) const;             // null: no member
  const MemberView* member_at(std::uint32_t position) const;  // null: no such position
  std::size_t with_record() const;
};

// Where one rank's record stands in the groups.
struct RankView {
  RankId rank;
  const RankRecord* record = nullptr;
  struct Place {
    std::uint32_t group;
    std::uint32_t member;
  };
  std::vector<Place> by_slot;  // index: communicator slot of the record; group == kNoGroup: none
  static constexpr std::uint32_t kNoGroup = 0xffffffff;
};

struct JobView {
  const Evidence* evidence = nullptr;
  const Trace* trace = nullptr;
  std::vector<GroupView> groups;
  std::vector<RankView> ranks;  // one a rank, ascending; of several records of one rank the one that tells most
  RankSet seen;                 // ranks with a record
  RankSet known;                // ranks that anything names: records, member lists, the world size
  RankSet outdated;             // ranks all of whose records are of an earlier attempt: they are not seen
  RankSet behind;               // ranks whose dump was taken before others completed calls with them

  const RankView* view_of(RankId rank) const;  // null: no record of it
};

// No member's call of such a kind can end well before every member has made it.
bool synchronizes(OpKind kind);

// A recorder without device events (gloo) shows a call that failed or timed out like one that completed.
bool only_tells_over(const RankRecord& record);

JobView build_job_view(const Evidence& evidence, const RecordChoice& choice);

// Something besides the dumps says that the job is in trouble: a time-out, an end, a broken connection.
bool trouble_in_logs(const Evidence& evidence);

// Wording shared by the analyzers of collectives.
std::string describe_call(const Trace& trace, const RankRecord& record, std::uint32_t row);  // "all_reduce f32 x 1,000"
std::string describe_call(const JobView& job, const MemberView& member, std::uint32_t row);
std::string call_site_text(const JobView& job, const MemberView& member,
                           std::uint32_t row);  // "train.py:10 in step" or ""
// "rank 3: all_reduce f32 x 1,000 (group g, seq 12), started, at train.py:10 in step", with the input's path.
EvidenceLine call_evidence(const JobView& job, const GroupView& group, const MemberView& member, std::uint32_t row);

}  // namespace ddx::analyzers
