#include "analyzers/mismatch/divergence_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ddx::analyzers {
namespace {

// The parts that the sentences are made of.
struct Words {
  std::string odd;       // "rank 3", "ranks 4-7"
  std::string others;    // the reference side
  std::string odd_call;  // "all_reduce f32 x 1,000"
  std::string other_call;
  std::string kind;   // of the call that one side has more
  std::string place;  // "group default_pg, seq 12"
  bool many = false;  // the odd side is several ranks
};

RankSet ranks_of(const GroupView& group, const std::vector<std::uint32_t>& side) {
  std::vector<RankId> ranks;
  for (std::uint32_t index : side) ranks.push_back(group.members[index].rank);
  return RankSet(std::move(ranks));
}

Words words_of(const JobView& job, const Divergence& d, std::uint32_t odd, std::uint32_t reference) {
  const GroupView& group = job.groups[d.group];
  RankSet odd_ranks, other_ranks = ranks_of(group, d.sides[0]);
  for (std::size_t i = 1; i < d.sides.size(); ++i) {
    const bool is_odd = i == 1 || d.code != "rank0-only";  // of one caller all others are the others
    (is_odd ? odd_ranks : other_ranks).insert(ranks_of(group, d.sides[i]));
  }
  const MemberView& odd_member = group.members[odd];
  const MemberView& other_member = group.members[reference];
  const std::uint32_t odd_row = odd_member.call_at(d.seq)->row;
  const std::uint32_t other_row = other_member.call_at(d.seq)->row;
  Words w;
  w.odd = odd_ranks.label(8);
  w.others = other_ranks.label(8);
  w.odd_call = describe_call(job, odd_member, odd_row);
  w.other_call = describe_call(job, other_member, other_row);
  w.kind = d.edit.kind == Edit::Kind::extra ? w.odd_call : w.other_call;
  w.place = fmt::format("group {}, seq {}", group.label, d.seq);
  const RankRecord& record = *odd_member.record;
  // Calls of a log are NCCL's, which prints its opCount in hexadecimal: the reader will search for that.
  if (!record.snapshot && !record.whole_program) w.place += fmt::format(", opCount 0x{:x} in the log", d.seq);
  w.many = odd_ranks.size() > 1;
  return w;
}

std::string count_of(std::size_t n, const std::string& call) {
  return n == 1 ? fmt::format("one {}", call) : fmt::format("{} calls, from {} on,", n, call);
}

std::string summary_of(const Divergence& d, const Words& w) {
  const bool extra = d.edit.kind == Edit::Kind::extra;
  if (d.code == "uneven-steps" && (extra || d.edit.support == 0)) {
    if (extra && d.has_majority) {
      return fmt::format("{} went on repeating {} steps ({}) after {} had left them ({})", w.odd,
                         w.many ? "their" : "its", w.odd_call, w.others, w.place);
    }
    const std::string& leaver = extra ? w.others : w.odd;
    const std::string& stayer = extra ? w.odd : w.others;
    return fmt::format("{} left a repeating pattern earlier than {}: {} against {} ({})", leaver, stayer,
                       extra ? w.other_call : w.odd_call, extra ? w.odd_call : w.other_call, w.place);
  }
  if (d.code == "uneven-steps") {
    return fmt::format("{} left a repeating pattern {} earlier than {} ({})", w.odd,
                       d.edit.length == 1 ? "one call" : fmt::format("{} calls", d.edit.length), w.others, w.place);
  }
  if (d.code == "rank0-only") {
    return fmt::format("only {} makes {} ({}); {} {} not", w.odd, w.odd_call, w.place, w.others,
                       d.sides[0].size() == 1 ? "does" : "do");
  }
  if (d.code == "rank-skipped" && !d.has_majority) {
    return fmt::format("{} {} {} more than {} ({}), or {} made one less: with two equal sides nobody can say which",
                       w.odd, w.many ? "make" : "makes", count_of(d.edit.length ? d.edit.length : 1, w.kind), w.others,
                       w.place, w.others);
  }
  if (d.code == "rank-skipped" && extra) {
    return fmt::format("{} {} {} more than {} ({})", w.odd, w.many ? "make" : "makes", count_of(d.edit.length, w.kind),
                       w.others, w.place);
  }
  if (d.code == "rank-skipped") {
    return fmt::format("{} skipped {} that {} made ({})", w.odd,
                       count_of(d.edit.length ? d.edit.length : 1, w.other_call), w.others, w.place);
  }
  if (d.code == "shifted") {
    return fmt::format("{} {} off by {} call{} against {} ({})", w.odd, w.many ? "are" : "is", d.edit.length,
                       d.edit.length == 1 ? "" : "s", w.others, w.place);
  }
  if (d.code == "order-inverted" && d.edit.kind == Edit::Kind::reorder) {
    return fmt::format("{} {} the same calls in another order than {}: {} comes first there, and {} here ({})", w.odd,
                       w.many ? "make" : "makes", w.others, w.odd_call, w.other_call, w.place);
  }
  if (d.code == "order-inverted") {
    return fmt::format("{} swapped two operations: {} comes before {} there ({})", w.odd, w.odd_call, w.other_call,
                       w.place);
  }
  if (d.code == "group-create") {
    return fmt::format("groups are created in different orders: {} {} {} where {} {} {} ({})", w.odd,
                       w.many ? "call" : "calls", w.odd_call, w.others, d.sides[0].size() == 1 ? "calls" : "call",
                       w.other_call, w.place);
  }
  const std::string difference = d.field == Field::none ? "call" : std::string(name_of(d.field));
  return fmt::format("{} and {} disagree on the {}: {} against {} ({})", w.odd, w.others, difference, w.odd_call,
                     w.other_call, w.place);
}

std::string calls_text(std::size_t n) { return n == 1 ? "call" : fmt::format("{} calls", format_count(n)); }

std::string end_text(const Divergence& d) {
  if (!d.timed_out.empty()) {
    return fmt::format(
        "The recorder shows the operation as over{}, as it does after a time-out too: by the logs {} timed out "
        "waiting.\n",
        d.end == CallsEnd::open ? " on some ranks" : "", d.timed_out.label(8));
  }
  switch (d.end) {
    case CallsEnd::open: return "";
    case CallsEnd::completed:
      return "All sides show the operation as completed: it did not hang, but its result is not to be trusted.\n";
    case CallsEnd::over: break;
  }
  return "The recorder shows the operation as over, as it does after a time-out too. If it did not hang, its result is "
         "not to be trusted.\n";
}

std::string why_of(const JobView& job, const Divergence& d, const Words& w) {
  const GroupView& group = job.groups[d.group];
  std::string text = fmt::format("Calls were matched by sequence number in group {} ({} members, {} with evidence). ",
                                 group.label, group.members.size(), group.with_record());
  text += fmt::format("Seq {} is the first difference; what is retained before it agrees.\n", d.seq);
  switch (d.edit.kind) {
    case Edit::Kind::skip:
    case Edit::Kind::extra:
      if (d.edit.support > 0) {
        const bool skip = d.edit.kind == Edit::Kind::skip;
        const bool one = d.edit.length == 1;
        text += fmt::format(
            "{} {} {} the list of {}, and the lists agree for the next {}{}: what differs behind that is a "
            "consequence. "
            "The hang may show later than this.\n",
            skip ? "Put" : "Take",
            skip ? (one ? "the missing call" : "the missing calls") : (one ? "that call" : "those calls"),
            skip ? "into" : "out of", w.odd, d.edit.support == 1 ? "" : format_count(d.edit.support) + " ",
            d.edit.support == 1 ? "call" : "calls");
      } else {
        text += fmt::format(
            "Nothing was called behind it; that {} {} a call rests on the rounds before, in which the one call "
            "followed "
            "the other.\n",
            w.odd, d.edit.kind == Edit::Kind::skip ? "left out" : "added");
      }
      break;
    case Edit::Kind::replace:
      if (d.edit.support > 0) {
        text += fmt::format("Behind it the lists agree for the next {} without any shift: only this one is wrong.\n",
                            calls_text(d.edit.support));
      } else {
        text +=
            "Nothing was called behind it, so whether a call was left out, added or changed is told by what came "
            "before.\n";
      }
      break;
    case Edit::Kind::swap: text += "Exchanging the two makes the rest agree.\n"; break;
    case Edit::Kind::reorder:
      text += fmt::format(
          "From there to the end of their programs, {} calls at a time, both make the same calls: nothing was left out "
          "or added.\n",
          d.edit.length);
      break;
    case Edit::Kind::none: text += "No single change of one list makes the rest agree.\n"; break;
  }
  if (!d.has_majority && d.culprits.size() > 1)
    text += "No side holds more than half of the ranks, so none is right by majority: all are named.\n";
  const MemberView& odd = group.members[d.sides[1].front()];
  const bool any_before = odd.record->head_lost || odd.first_known.value_or(0) < d.seq;
  if (any_before && (d.code == "rank-skipped" || d.code == "shifted" || d.code == "uneven-steps")) {
    text += fmt::format(
        "Calls before seq {} matched by shape only: if equal calls precede it, the first real difference may "
        "be earlier, with values mixed silently.\n",
        d.seq);
  }
  return text + end_text(d);
}

// Two sides of one size each: nobody can say which is right, but their ratio may tell of a batch that one side lacks.
std::string ratio_text(const JobView& job, const Divergence& d, std::uint32_t odd, std::uint32_t reference) {
  if (d.code != "mismatch-size" || d.has_majority || d.sides.size() != 2) return "";
  const auto size = [&](std::uint32_t index) {
    const MemberView& member = job.groups[d.group].members[index];
    return job.trace->signature(member.program->signature(member.call_at(d.seq)->row)).count_in;
  };
  const auto odd_size = size(odd), other_size = size(reference);
  if (!odd_size || !other_size || *odd_size == *other_size || *odd_size == 0 || *other_size == 0) return "";
  const std::uint64_t larger = std::max(*odd_size, *other_size), smaller = std::min(*odd_size, *other_size);
  const std::uint64_t common = std::gcd(larger, smaller);
  const RankSet short_side = ranks_of(job.groups[d.group], d.sides[*odd_size < *other_size ? 1 : 0]);
  return fmt::format("The sizes are as {}:{}. A short batch on {} would explain it; nothing here proves that.\n",
                     format_count(larger / common), format_count(smaller / common), short_side.label(8));
}

std::string advice_of(const std::string& code, const Words& w) {
  if (code == "uneven-steps") {
    return "All ranks must take the same number of steps: drop_last or padding for data, synced_gpus for generation, "
           "join() for uneven inputs; or agree on the number of steps before the loop.";
  }
  if (code == "rank0-only") {
    return fmt::format(
        "Look at what {} does there alone (saving, logging, evaluating under a rank test): it calls a collective, "
        "perhaps hidden in a property or a forward. Call it on all ranks, or not at all.",
        w.odd);
  }
  if (code == "rank-skipped" || code == "shifted") {
    return "Look for a branch, an early return or an exception handler around that call that only some ranks take.";
  }
  if (code == "order-inverted") return "Issue both operations in the same order on all ranks.";
  if (code == "group-create") {
    return "Create groups on all ranks in the same order, also on ranks that are no members: sort the lists before "
           "creating.";
  }
  if (code == "mismatch-size") {
    return "Sizes must be equal on all ranks: look for a short last batch or dropped samples (drop_last, padding), or "
           "gather "
           "the sizes first.";
  }
  if (code == "mismatch-dtype")
    return "Cast to one datatype on all ranks before the call (autocast on some ranks only?).";
  if (code == "mismatch-root") return "All ranks must pass the same root: it is a rank number, not each rank's own.";
  if (code == "mismatch-redop") return "All ranks must pass the same reduction operation.";
  return "Compare the two call sites: ranks took different paths to this point.";
}

Confidence confidence_of(const GroupView& group, const Divergence& d, bool is_all_to_all) {
  if (group.synthesized) return d.has_majority ? Confidence::medium : Confidence::low;
  const bool clear = d.sides[0].size() >= 2 * (d.culprits.empty() ? 1 : d.culprits.size());
  if (d.code == "mismatch-size" && is_all_to_all) return Confidence::medium;
  if (d.has_majority && clear && group.members_known) return Confidence::high;
  return Confidence::medium;
}

// The next call of the odd side that agrees with the reference's again: it proves a shift.
void add_proof_of_shift(const JobView& job, const Divergence& d, const MemberView& odd, const MemberView& reference,
                        std::vector<EvidenceLine>& lines) {
  if (d.edit.support == 0) return;
  const bool skip = d.edit.kind == Edit::Kind::skip;
  if (!skip && d.edit.kind != Edit::Kind::extra) return;
  const MemberView& longer = skip ? reference : odd;
  if (const Call* call = longer.call_at(d.seq + d.edit.length)) {
    lines.push_back(call_evidence(job, job.groups[d.group], longer, call->row));
  }
}

}  // namespace

Finding divergence_finding(const JobView& job, const Divergence& d, std::uint32_t odd, std::uint32_t reference) {
  const GroupView& group = job.groups[d.group];
  const Words w = words_of(job, d, odd, reference);
  Finding f;
  f.code = d.code;
  f.severity = d.code == "shifted" ? Severity::warning : Severity::error;
  const MemberView& shown = group.members[odd];
  const OpKind kind = job.trace->signature(shown.program->signature(shown.call_at(d.seq)->row)).kind;
  f.confidence = confidence_of(group, d, kind == OpKind::all_to_all);
  f.ranks = d.culprits;
  f.subjects = {"group " + group.label, fmt::format("seq {}", d.seq)};
  f.summary = summary_of(d, w);
  f.explanation = why_of(job, d, w) + ratio_text(job, d, odd, reference);
  const MemberView& odd_member = group.members[odd];
  const MemberView& other_member = group.members[reference];
  const std::uint32_t odd_row = odd_member.call_at(d.seq)->row, other_row = other_member.call_at(d.seq)->row;
  f.evidence.push_back(call_evidence(job, group, odd_member, odd_row));
  f.evidence.push_back(call_evidence(job, group, other_member, other_row));
  // First the line that needs a look: of a call that was skipped, where the others make it.
  const bool lacks = d.code == "rank-skipped" && d.edit.kind == Edit::Kind::skip;
  if (lacks) std::swap(f.evidence[0], f.evidence[1]);
  add_proof_of_shift(job, d, odd_member, other_member, f.evidence);
  f.advice = advice_of(d.code, w);
  // Where all calls come from one helper its line says nothing.
  const std::string site = lacks ? call_site_text(job, other_member, other_row) : "";
  const bool shared_site = site == call_site_text(job, odd_member, odd_row);
  if (!site.empty() && !shared_site) {
    f.advice = fmt::format(
        "Look at {}, which {} did not reach: a branch, an early return or an exception handler that "
        "only some ranks take leads around it.",
        site, w.odd);
  }
  return f;
}

}  // namespace ddx::analyzers
