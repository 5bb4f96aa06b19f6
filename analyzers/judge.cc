#include "analyzers/judge.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ddx::analyzers {
namespace {

bool one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// What is known of a silent rank, from the most to the least specific.
constexpr std::array<std::string_view, 9> kAbsence{"dead-rank",     "rank0-only",   "uneven-steps",
                                                   "group-create",  "rank-skipped", "stuck-host",
                                                   "missing-ranks", "lagging-rank", "timeout"};

std::size_t specificity(std::string_view code) {
  return static_cast<std::size_t>(std::find(kAbsence.begin(), kAbsence.end(), code) - kAbsence.begin());
}

bool names_somebody(const Finding& f) { return f.severity == Severity::error && !f.ranks.empty(); }

bool subset(const RankSet& part, const RankSet& whole) { return part.without(whole).empty(); }

bool is_mismatch(std::string_view code) { return code.starts_with("mismatch-"); }

// Says how the lists of calls came to differ, where a mismatch only says that two calls did.
bool tells_the_story(std::string_view code) {
  return one_of(code, {"rank0-only", "uneven-steps", "group-create", "rank-skipped", "shifted", "order-inverted",
                       "order-cross-group"});
}

// Of a rank that was seen waiting a bare exit code says only that it gave up.
bool gave_up(const Finding& f, const Finding& wait) {
  return f.may_be_consequence && !wait.may_be_consequence && !f.ranks.empty() && subset(f.ranks, wait.victims);
}

// Whether `cause` already says what `f` says, or is why it happened.
bool explains(const Finding& cause, const Finding& f) {
  // Only worth a word where there is no other conclusion.
  if (f.code == "no-desync") return !one_of(cause.code, {"no-desync", "evidence-missing"});
  // Whom it waited for may not be known: then nobody is named.
  if (cause.code == "inconclusive" && gave_up(f, cause)) return true;
  if (cause.severity != Severity::error) return false;
  if (f.code == "inconclusive" && gave_up(cause, f)) return false;
  if (cause.code == "dead-rank" && gave_up(f, cause)) return true;
  if (cause.code == f.code) {
    // The same conclusion from another source (a log and a dump).
    return cause.ranks == f.ranks && !f.ranks.empty() && cause.confidence >= f.confidence;
  }
  const std::size_t a = specificity(cause.code), b = specificity(f.code);
  // A bare exit code after a hang says less than what its calls say of the hang.
  if (cause.may_be_consequence && b < kAbsence.size() && f.confidence > Confidence::low) return false;
  if (f.may_be_consequence && a < kAbsence.size() && cause.confidence > Confidence::low && !f.ranks.empty() &&
      subset(f.ranks, cause.ranks)) {
    return true;
  }
  if (a < b && b < kAbsence.size() && !f.ranks.empty() && subset(f.ranks, cause.ranks)) return true;
  // A rank that was waiting when its calls were dumped ended later, and because of the hang.
  const bool about_calls = is_mismatch(cause.code) || tells_the_story(cause.code) ||
                           one_of(cause.code, {"missing-ranks", "p2p-cycle", "p2p-unmatched", "stuck-host"});
  if (f.code == "dead-rank" && about_calls && !f.ranks.empty() && subset(f.ranks, cause.victims)) return true;
  if (is_mismatch(f.code) && tells_the_story(cause.code) && f.ranks == cause.ranks) return true;
  // Why a process ended, why it never came: a part of the machine, or another incarnation of it.
  if (one_of(cause.code, {"gpu-fault", "device-ordinal", "disk-low", "partial-restart"}) && b < kAbsence.size() &&
      !f.ranks.empty() && subset(f.ranks, cause.ranks)) {
    return true;
  }
  if (f.code == "dead-rank" && cause.code == "port-blocked" && !f.ranks.empty() && subset(f.ranks, cause.victims)) {
    return true;
  }
  // A start that hangs is what follows from a start that failed.
  if (f.code == "init-hang" && one_of(cause.code, {"device-duplicate", "device-ordinal", "iface-loopback", "gpu-fault",
                                                   "port-blocked", "rank-duplicate", "world-size-disagree"})) {
    return true;
  }
  // Nobody's fault as long as somebody's fault is known.
  if (one_of(f.code, {"stuck-in-collective", "timeout", "inconclusive", "stuck-device"}) && names_somebody(cause)) {
    return true;
  }
  return one_of(f.code, {"stuck-in-collective", "timeout"}) &&
         one_of(cause.code, {"network", "nic-asymmetry", "shm-small", "host-asymmetry", "device-duplicate", "gpu-fault",
                             "iface-loopback", "port-blocked", "disk-low"});
}

// What was dropped for what, as one sentence each.
class Cascade {
 public:
  void add(const Finding& cause, const Finding& f) {
    // Of the same ranks it is the same fact, told less well; only what names nobody is a consequence to speak of.
    if (cause.code == f.code || f.severity == Severity::info || !f.ranks.empty()) return;
    if (count_ == 0) first_ = f.code + " follows from " + cause.code + ": " + f.summary;
    ++count_;
    if (count_ <= 6) text_ += f.code + " (" + f.summary + ") follows from " + cause.code + ".\n";
  }

  void tell(std::vector<Finding>& findings) const {
    if (count_ == 0) return;
    Finding f;
    f.code = "desync-cascade";
    f.severity = Severity::info;
    f.confidence = Confidence::medium;
    f.summary = first_;
    if (count_ > 1) f.summary += "; and " + std::to_string(count_ - 1) + " more";
    f.explanation = text_;
    f.advice = "Nothing to mend here: a consequence goes when its cause does.";
    findings.push_back(std::move(f));
  }

 private:
  std::size_t count_ = 0;
  std::string first_;
  std::string text_;
};

void drop_explained(std::vector<Finding>& findings) {
  std::vector<bool> dropped(findings.size(), false);
  Cascade cascade;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    for (std::size_t k = 0; k < findings.size() && !dropped[i]; ++k) {
      if (k == i || dropped[k] || !explains(findings[k], findings[i])) continue;
      dropped[i] = true;
      if (findings[k].severity == Severity::error) {
        findings[k].victims.insert(findings[i].victims.without(findings[k].ranks));
      }
      cascade.add(findings[k], findings[i]);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) findings[kept] = std::move(findings[i]);
    ++kept;
  }
  findings.resize(kept);
  cascade.tell(findings);
}

}  // namespace

std::vector<Finding> settle(std::vector<Finding> findings) {
  drop_explained(findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return a.confidence > b.confidence;
  });
  return findings;
}

}  // namespace ddx::analyzers
