// When two calls of one sequence number agree. A key is equal for calls that certainly agree; calls with unlike keys
// are compared field by field, since a field that a record lacks agrees with anything.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// What differs first, in order of weight.
enum class Field { none, kind, group_members, count, datatype, root, redop };
std::string_view name_of(Field field);

class CallKeys {
 public:
  explicit CallKeys(const JobView& job);
  std::uint64_t key(const MemberView& member, const Call& call) const;
  // Of one member's calls from `first` on, at most `limit`.
  std::vector<std::uint64_t> keys(const MemberView& member, std::size_t first, std::size_t limit) const;

 private:
  const JobView* job_;
  std::vector<std::uint64_t> by_signature_;
};

Field first_difference(const JobView& job, const MemberView& a, const Call& call_a, const MemberView& b,
                       const Call& call_b);

// The element count that all members of a collective must share, by kind: all_gather its output (inputs may be uneven
// by right when lists are given), scatter its output, the others their input; of an all_to_all only where it looks even
// (as much out as in, no split lists), and even then ranks may differ by right. Absent where nothing must agree
// (barrier, the making of groups) or nothing was recorded.
std::optional<std::uint64_t> shared_count(const Signature& signature);

}  // namespace ddx::analyzers
