#include "traces/formats/comm_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/rank_set.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/record_builder.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostDigits = 18;  // of a name: ASTRA-sim takes a 32-bit integer

struct ListedMember {
  std::int64_t rank = 0;
  std::uint64_t line = 0;
  bool fits = true;  // false: no 64-bit integer
};

struct ListedGroup {
  std::string_view name;
  std::uint64_t line = 0;
  std::vector<ListedMember> members;
};

// Reads such a file token by token, and stops at the first that does not belong there.
class GroupScanner {
 public:
  explicit GroupScanner(std::string_view text) : text_(text) {}

  // Calls `take` with each group. False: `expected`, `at` and `line` say what is wrong.
  template <class Take>
  bool run(Take take) {
    if (!token('{', "{ and the groups")) return false;
    while (true) {
      ListedGroup group;
      if (!name(group) || !token(':', ": behind the name of a group") || !members(group)) return false;
      take(std::move(group));
      if (peek() != ',') break;
      ++at;
    }
    if (!token('}', ", and another group, or }")) return false;
    if (peek() != '\0' || at < text_.size()) return fail("nothing behind the groups");
    return true;
  }

  std::string_view expected;
  std::size_t at = 0;
  std::uint64_t line = 1;
  bool at_end() const { return at >= text_.size(); }
  std::size_t numbers = 0;  // members read so far

 private:
  bool fail(std::string_view what) {
    expected = what;
    return false;
  }

  // The next character that is no blank; NUL at the end.
  char peek() {
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '\n') ++line;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
    }
    return '\0';
  }

  bool token(char wanted, std::string_view what) {
    if (at_end() || peek() != wanted) return fail(what);
    ++at;
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  bool name(ListedGroup& group) {
    constexpr std::string_view kWhat = "the name of a group: a whole number in quotes";
    if (!token('"', kWhat)) return false;
    const std::size_t begin = at;
    while (at < text_.size() && is_digit(text_[at])) ++at;
    group.name = text_.substr(begin, at - begin);
    group.line = line;
    if (group.name.empty() || group.name.size() > kMostDigits || at_end() || text_[at] != '"') return fail(kWhat);
    ++at;
    return true;
  }

  bool members(ListedGroup& group) {
    if (!token('[', "[ and the members of the group")) return false;
    if (peek() == ']') {
      ++at;
      return true;
    }
    do {
      if (!number(group)) return false;
      if (peek() != ',') return token(']', ", and another member, or ]");
      ++at;
    } while (true);
  }

  bool number(ListedGroup& group) {
    const char first = peek();
    const std::size_t begin = at;
    if (first == '-') ++at;
    while (at < text_.size() && is_digit(text_[at])) ++at;
    const std::string_view digits = text_.substr(begin, at - begin);
    if (digits.empty() || digits == "-") return fail("a member of the group: a rank");
    const auto value = parse_signed(digits);
    group.members.push_back({value.value_or(0), line, value.has_value()});
    ++numbers;
    return true;
  }

  std::string_view text_;
};

Sniff sniff_comm_groups(const std::string& path, std::string_view head) {
  constexpr std::size_t kWholeHead = 32 * 1024;  // a file that goes on behind its head has a longer one
  GroupScanner scanner(head);
  const bool whole = scanner.run([](const ListedGroup&) {});
  const bool cut = !whole && scanner.at_end() && (scanner.numbers > 0 || head.size() >= kWholeHead);
  if (whole || cut) return Sniff::likely;
  const std::string file = lower(path.substr(path.find_last_of('/') + 1));
  const bool named = file.find("comm_group") != std::string::npos || file.find("comm-group") != std::string::npos;
  return named && head.find_first_not_of(" \t\r\n") != std::string_view::npos &&
                 head[head.find_first_not_of(" \t\r\n")] == '{'
             ? Sniff::maybe
             : Sniff::no;
}

// The members that can be ranks, each once.
GroupList checked(const Source& source, const ListedGroup& listed, Evidence& out) {
  GroupList group{InputId(0), listed.line, std::string(listed.name), {}};
  std::set<std::int64_t> seen;
  for (const ListedMember& member : listed.members) {
    const auto refuse = [&](const std::string& what) {
      out.diagnostics.count("comm_groups.bad_member", DiagnosticSeverity::error,
                            fmt::format("{}:{}: group {}: {}", source.path, member.line, group.name, what));
    };
    if (!member.fits || member.rank < 0 || member.rank >= std::int64_t{kMaxRanks}) {
      refuse(fmt::format("expected ranks from 0 to {}, found {}", kMaxRanks - 1,
                         member.fits ? std::to_string(member.rank) : "a number beyond all"));
    } else if (!seen.insert(member.rank).second) {
      refuse(fmt::format("expected each member once, found rank {} again", member.rank));
    } else {
      group.members.emplace_back(member.rank);
    }
  }
  return group;
}

void read_comm_groups(const Source& source, const ImportOptions&, Evidence& out) {
  out.inputs.front().file_rank.reset();  // a number in its name is that of no rank
  std::map<std::string, std::uint64_t, std::less<>> lines;
  GroupScanner scanner(source.bytes);
  const bool whole = scanner.run([&](const ListedGroup& group) {
    const auto [at, fresh] = lines.try_emplace(std::string(group.name), group.line);
    if (!fresh) {
      out.diagnostics.count("comm_groups.group_twice", DiagnosticSeverity::error,
                            fmt::format("{}:{}: group {} is in line {} already: expected one list of it", source.path,
                                        group.line, group.name, at->second));
      return;
    }
    if (group.members.empty()) {
      out.diagnostics.count("comm_groups.bad_member", DiagnosticSeverity::error,
                            fmt::format("{}:{}: group {}: expected a member", source.path, group.line, group.name));
      return;
    }
    out.group_lists.push_back(checked(source, group, out));
  });
  if (!whole) throw Error(source.path, {scanner.at, scanner.line}, fmt::format("expected {}", scanner.expected));
}

// ---- once all files are read ----------------------------------------------------------------------------------------

std::string place_of(const Evidence& evidence, const GroupList& list) {
  return fmt::format("{}:{}", evidence.path(list.input), list.line);
}

bool is_of_chakra(const Evidence& evidence, const RankRecord& record) {
  const Input* input = evidence.input(record.input);
  return input && input->format == "chakra";
}

using Lists = std::map<std::string_view, const GroupList*>;

Lists lists_of(Evidence& evidence) {
  Lists lists;
  for (const GroupList& list : evidence.group_lists) {
    const auto [at, fresh] = lists.try_emplace(list.name, &list);
    if (fresh || at->second->members == list.members) continue;
    evidence.diagnostics.count("comm_groups.disagree", DiagnosticSeverity::error,
                               fmt::format("{} and {} list other members for group {}: expected one of them",
                                           place_of(evidence, *at->second), place_of(evidence, list), list.name));
  }
  return lists;
}

// The first call of `record` in the communicator of `slot`: "all_reduce 'n7'".
std::string first_call(const Trace& trace, const RankRecord& record, std::size_t slot) {
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (program.comm_slot(row) != slot) continue;
    const Signature& s = trace.signature(program.signature(row));
    return fmt::format("{} '{}'", name_of(s.kind), trace.text(s.name));
  }
  return "a call";
}

void refuse_outsiders(Evidence& evidence, const Lists& lists, const std::vector<bool>& listed) {
  const Trace& trace = evidence.trace;
  for (const RankRecord& record : trace.ranks) {
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const CommId comm = record.comms[slot];
      if (!listed[comm.value] || record.comm_rank[slot] != RankRecord::kNoPosition || !record.rank) continue;
      const std::string_view name = trace.text(trace.communicator(comm).name);
      evidence.diagnostics.count("comm_groups.no_member", DiagnosticSeverity::error,
                                 fmt::format("{}: {} of rank {} is in group {}, and {} does not list that rank there",
                                             evidence.path(record.input), first_call(trace, record, slot),
                                             record.rank->value, name, place_of(evidence, *lists.at(name))));
    }
  }
}

void refuse_unknown(Evidence& evidence, const RankRecord& record, std::size_t slot) {
  const Trace& trace = evidence.trace;
  evidence.diagnostics.count(
      "comm_groups.unknown_group", DiagnosticSeverity::error,
      fmt::format("{}: {} of rank {} is in group {}, which {} does not list", evidence.path(record.input),
                  first_call(trace, record, slot), record.rank ? record.rank->value : -1,
                  trace.text(trace.communicator(record.comms[slot]).name),
                  evidence.path(evidence.group_lists.front().input)));
}

void refuse_beyond_world(Evidence& evidence) {
  const auto world = evidence.trace.world_size;
  for (const GroupList& list : evidence.group_lists) {
    const auto beyond = std::find_if(list.members.begin(), list.members.end(),
                                     [&](RankId rank) { return world && rank.value >= std::int64_t{*world}; });
    if (beyond == list.members.end()) continue;
    evidence.diagnostics.count("comm_groups.bad_member", DiagnosticSeverity::error,
                               fmt::format("{}: group {}: rank {} is outside the world of {} that the traces state",
                                           place_of(evidence, list), list.name, beyond->value, *world));
  }
}

}  // namespace

Importer comm_groups_importer() {
  return {"comm-groups", "Groups of Chakra traces in JSON: {\"1\": [0, 1, 2, 3]}", sniff_comm_groups, read_comm_groups};
}

void list_stated_groups(Evidence& evidence) {
  if (evidence.group_lists.empty()) return;
  Trace& trace = evidence.trace;
  const Lists lists = lists_of(evidence);
  refuse_beyond_world(evidence);
  std::vector<bool> listed(trace.communicators().size(), false);
  bool any = false;
  for (const RankRecord& record : trace.ranks) {
    if (!is_of_chakra(evidence, record)) continue;
    any = true;
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const CommId comm = record.comms[slot];
      const std::string_view name = trace.text(trace.communicator(comm).name);
      if (listed[comm.value] || !trace.communicator(comm).members.empty() || name == kUnlistedWorld) continue;
      const auto at = lists.find(name);
      if (at == lists.end()) {
        refuse_unknown(evidence, record, slot);
        continue;
      }
      trace.list_members(comm, at->second->members, false);
      listed[comm.value] = true;
    }
  }
  if (!any) {
    evidence.diagnostics.count("comm_groups.no_traces", DiagnosticSeverity::data_loss,
                               evidence.path(evidence.group_lists.front().input) +
                                   ": it lists groups of Chakra traces, and none is here: give the .et files with it");
  }
  place_in_groups(trace, listed);
  refuse_outsiders(evidence, lists, listed);
}

}  // namespace ddx::formats
