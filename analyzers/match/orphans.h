// Sends and receives without a partner: of whole programs it is known that nobody will ever post one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

struct Orphan {
  std::uint32_t group = 0, member = 0, row = 0;  // the call: indices into JobView::groups and its members, row
  std::uint32_t partner = 0;                     // member (index) whose program lacks the call that would meet it
  bool sends = false;
};

// Calls of channels both ends of which are whole programs, and which have more calls at one end than at the other: the
// last ones of the longer end, since the n-th send meets the n-th receive. Ascending by group, member and row.
std::vector<Orphan> find_orphans(const JobView& job);

// Whether that call is one of them.
bool is_orphan(const std::vector<Orphan>& orphans, std::uint32_t group, std::uint32_t member, std::uint32_t row);

// Orphans of one end of a channel that are alike are one here, the first of them.
class OrphanEnds {
 public:
  OrphanEnds(const JobView& job, const std::vector<Orphan>& orphans);

  // Those of a member, sends or receives; those of one rank with another, in whatever group.
  const std::vector<Orphan>& of(std::uint32_t group, std::uint32_t member, bool sends) const;
  const std::vector<Orphan>& between(RankId caller, RankId partner, bool sends) const;

  // A call whose peer is another one than was meant: the orphan of the rank that it should have named explains both.
  // Only where exactly one other rank waits for, or sends, just that: nullopt where there is no such, or a choice.
  std::optional<Orphan> meant_partner(const Orphan& call) const;
  // Whether a send and a receive may be the two halves of one message.
  bool fit(const Orphan& call, const Orphan& other) const;

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, bool>;
  const Signature& signature(const Orphan& call) const;

  const JobView& job_;
  std::map<Key, std::vector<Orphan>> by_caller_, by_partner_;  // group, member
  std::map<std::tuple<RankId, RankId, bool>, std::vector<Orphan>> by_ranks_;
  std::vector<Orphan> none_;
};

}  // namespace ddx::analyzers
