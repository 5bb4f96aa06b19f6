#include "traces/formats/ras_text.h"

#include <algorithm>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

using Topic = RasTextState::Topic;

// A report that says nothing for so many lines is over.
constexpr unsigned kMaxIdleLines = 40;
constexpr std::size_t kMaxListed = 1U << 20;  // members, groups, processes of one report

std::string name(std::string_view text) { return printable(trimmed(text), 255); }

// "    0         1         4         8        32        32   RUNNING  MISMATCH"
bool read_row(const LogLine& line, RasTextState& state) {
  std::string_view rest = line.body;
  const auto group = number_at(trimmed(next_word(rest)));
  if (!group || *group < 0 || state.groups.size() >= kMaxListed) return false;
  RasTextState::GroupRow row;
  std::string_view word = next_word(rest);
  // Numbers, which may be ranges ("4-8"): in group, nodes, ranks a node, ranks a communicator, ranks in group.
  for (int column = 1; !word.empty() && is_digit(word.front()); ++column) {
    if (column == 4) row.size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_at(word).value_or(0)));
    word = next_word(rest);
  }
  row.status = name(word);
  row.errors = name(next_word(rest));
  if (row.status.empty() || row.errors.empty()) return false;
  row.line = line.number;
  row.text = printable(trimmed(line.body), LogEventWriter::kMaxText);
  state.groups[*group] = std::move(row);
  return true;
}

RasCommunicator& current(RasTextState& state, LogEventWriter& events) {
  return std::get<RasCommunicator>(events.at(*state.current).fact);
}

// "#0-0 (00000000deadbeef) MISMATCH"; one communicator may have a section under Errors and one under Warnings.
bool read_section(const LogLine& line, RasTextState& state, LogEventWriter& events) {
  const std::string_view text = trimmed(line.body);
  if (!text.starts_with("#")) return false;
  const auto group = number_at(text.substr(1));
  const auto number = number_after(text, "-");
  const std::size_t open = text.find('(');
  const std::size_t close = text.find(')');
  if (!group || !number || open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  const std::string_view hash = text.substr(open + 1, close - open - 1);
  if (hash.size() < 8 || hash.find_first_not_of("0123456789abcdefx") != std::string_view::npos) return false;
  const std::string errors = name(text.substr(close + 1));
  state.topic = Topic::none;
  state.list_follows = false;
  const auto row = state.groups.find(*group);
  if (row != state.groups.end()) row->second.detailed = true;
  const auto known = state.sections.find({*group, *number});
  if (known != state.sections.end()) {
    state.current = known->second;
    std::string& all = current(state, events).errors;
    if (!contains(all, errors)) all += "," + errors;
    return true;
  }
  RasCommunicator communicator;
  communicator.id = name(hash);
  communicator.errors = errors;
  if (row != state.groups.end()) {
    communicator.status = row->second.status;
    communicator.size = row->second.size;
  }
  state.current = events.size();
  if (events.add(line, std::move(communicator)) == nullptr) {
    state.current.reset();
  } else {
    state.sections[{*group, *number}] = *state.current;
  }
  return true;
}

RasCommunicator::Member& member(RasCommunicator& communicator, RankId rank) {
  // Ranks are listed in order: it is the last one, or a new one, but for repeats under another topic.
  for (auto it = communicator.members.rbegin(); it != communicator.members.rend(); ++it) {
    if (it->rank == rank) return *it;
    if (it - communicator.members.rbegin() > 64) break;
  }
  communicator.members.emplace_back();
  communicator.members.back().rank = rank;
  return communicator.members.back();
}

void count_member(RasTextState& state, RasCommunicator& communicator, RankId rank, std::uint64_t launched) {
  member(communicator, rank).counts.emplace_back(state.operation, launched);
}

// "Rank 12 -- GPU 4 managed by process 3230 on node 192.0.2.124", and with what it did between: "Rank 7 has launched up
// to operation 60 -- ...", "has not launched any operations", "has status INIT", "reported ...".
bool read_member(std::string_view text, RasTextState& state, LogEventWriter& events) {
  if (!text.starts_with("Rank ") || !state.current) return false;
  const auto rank = rank_from(number_after(text, "Rank "));
  const std::size_t dashes = text.find(" -- ");
  if (!rank || dashes == std::string_view::npos) return false;
  RasCommunicator& communicator = current(state, events);
  if (communicator.members.size() >= kMaxListed) return true;
  const std::string_view did = text.substr(0, dashes);
  const std::string_view where = text.substr(dashes + 4);
  RasCommunicator::Member& listed = member(communicator, *rank);
  if (const auto pid = number_after(where, "process ")) listed.pid = pid;
  if (const auto host = rest_after(where, "on node ")) listed.host = name(word_at(*host));
  const auto launched = count_after(did, "launched up to operation ");
  if (launched || contains(did, "not launched any")) {
    communicator.groups.push_back({state.operation, launched.value_or(0), 1, {*rank}});
    count_member(state, communicator, *rank, launched.value_or(0));
  } else if (const auto status = rest_after(did, "has status ")) {
    if (*status != "RUNNING") listed.error = "status " + name(*status);
  } else if (const auto error = rest_after(did, " reported ")) {
    listed.error = name(*error);
  } else if (state.topic == Topic::missing) {
    listed.missing = true;
    listed.unresponsive = true;
  } else if (state.topic == Topic::error) {
    listed.error = state.error;
  } else if (state.topic == Topic::counts && state.list_follows && !communicator.groups.empty()) {
    communicator.groups.back().ranks.push_back(*rank);
    count_member(state, communicator, *rank, communicator.groups.back().launched);
  }
  return true;
}

// "30 ranks have launched up to operation 640", "2 ranks have status INIT", "3 ranks reported Remote process error".
bool read_many(std::string_view text, RasTextState& state, LogEventWriter& events) {
  const auto count = number_at(text);
  if (!count || *count < 0 || !state.current) return false;
  RasCommunicator& communicator = current(state, events);
  const auto launched = count_after(text, "have launched up to operation ");
  if (launched || contains(text, "have not launched any")) {
    if (communicator.groups.size() >= kMaxListed) return true;
    communicator.groups.push_back({state.operation, launched.value_or(0), static_cast<std::uint64_t>(*count), {}});
    state.topic = Topic::counts;
    state.list_follows = true;
    return true;
  }
  auto error = rest_after(text, " ranks reported ");
  const auto status = rest_after(text, " ranks have status ");
  if (!error && !status) return false;
  state.topic = Topic::error;
  state.error = error ? name(*error) : *status == "RUNNING" ? std::string() : "status " + name(*status);
  return true;
}

bool read_topic(std::string_view text, RasTextState& state) {
  if (const auto rest = rest_after(text, "Communicator ranks have different ")) {
    state.topic = Topic::counts;
    state.list_follows = false;
    state.operation = name(until(*rest, " "));
    return true;
  }
  if (contains(text, "Missing communicator data from ")) {
    const bool processes = contains(text, "job process");
    state.topic = processes ? Topic::absent : Topic::missing;
    return true;
  }
  if (contains(text, "considered dead")) {
    state.topic = Topic::dead;
    return true;
  }
  if (contains(text, "Initialization error") || contains(text, "Asynchronous error")) {
    state.topic = Topic::error;
    state.error = name(text);
    return true;
  }
  return false;
}

// "The missing rank: 21", "The missing ranks: 4-7,21": nothing is known of them but the number.
bool read_missing(std::string_view text, RasTextState& state, LogEventWriter& events) {
  if (!text.starts_with("The missing rank") || !state.current) return false;
  const auto list = rest_after(text, ":");
  const auto ranks = list ? RankSet::parse(trimmed(*list), kMaxListed) : std::nullopt;
  if (!ranks) return false;
  RasCommunicator& communicator = current(state, events);
  for (RankId rank : *ranks) {
    if (communicator.members.size() >= kMaxListed) break;
    RasCommunicator::Member& listed = member(communicator, rank);
    listed.missing = listed.unresponsive = true;
  }
  return true;
}

// "Process 3487984 on node 192.0.2.213 managing GPU 5"
bool read_process(const LogLine& line, std::string_view text, RasTextState& state, LogEventWriter& events) {
  if (!text.starts_with("Process ") || (state.topic != Topic::dead && state.topic != Topic::absent)) return false;
  const auto pid = number_after(text, "Process ");
  const auto host = rest_after(text, "on node ");
  if (!pid || !host || state.dead.size() + state.absent.size() >= kMaxListed) return true;
  const bool dead = state.topic == Topic::dead;
  const std::string node = name(word_at(*host));
  (dead ? state.dead : state.absent).emplace_back(node, *pid);
  RasCommunicator report;
  report.errors = dead ? "DEAD" : "INCOMPLETE";
  LogLine told = line;
  told.host = node;
  told.pid = pid;
  events.add(told, std::move(report));
  return true;
}

bool opens_report(std::string_view text) {
  return text.starts_with("Group ") && contains(text, "Comms") && contains(text, "Errors");
}

}  // namespace

bool read_ras_line(const LogLine& given, bool interesting, RasTextState& state, LogEventWriter& events) {
  LogLine line = given;
  const std::string_view text = trimmed(line.body);
  if (interesting && text.starts_with("Timestamp: ")) {
    std::size_t used = 0;
    finish_ras(state, events);
    state.time = parse_date_time(text.substr(11), used);
    return true;
  }
  if (!line.time) line.time = state.time;
  if (interesting && opens_report(text)) {
    const auto time = state.time;
    finish_ras(state, events);
    state.time = time;
    state.open = state.in_table = true;
    return true;
  }
  if (!state.open) {
    // Reports are also pasted without their table.
    const bool section = interesting && text.starts_with("#") && read_section(line, state, events);
    const bool topic = interesting && read_topic(text, state) && state.topic != Topic::counts;
    state.open = section || topic;
    return state.open;
  }
  if (text.empty()) return true;
  if (state.in_table) {
    if (text.starts_with("#") && contains(text, "in group")) return true;
    if (read_row(line, state)) return true;
    state.in_table = false;
  }
  const bool part = read_section(line, state, events) || read_member(text, state, events) ||
                    read_missing(text, state, events) || read_topic(text, state) || read_many(text, state, events) ||
                    read_process(line, text, state, events);
  state.idle_lines = part ? 0 : state.idle_lines + 1;
  if (state.idle_lines > kMaxIdleLines) finish_ras(state, events);
  return part;
}

void finish_ras(RasTextState& state, LogEventWriter& events) {
  const auto listed = [](const std::vector<std::pair<std::string, std::int64_t>>& in,
                         const RasCommunicator::Member& m) {
    return m.pid && std::binary_search(in.begin(), in.end(), std::pair(m.host, *m.pid));
  };
  std::sort(state.dead.begin(), state.dead.end());
  std::sort(state.absent.begin(), state.absent.end());
  for (const auto& [key, index] : state.sections) {
    for (RasCommunicator::Member& m : std::get<RasCommunicator>(events.at(index).fact).members) {
      m.considered_dead = m.considered_dead || listed(state.dead, m);
      m.unresponsive = m.unresponsive || listed(state.absent, m);
      // Where all processes that are lost are dead, so is whoever is missing without a process of its own.
      const bool nameless = m.missing && !m.pid && !state.dead.empty() && state.absent.empty();
      m.considered_dead = m.considered_dead || nameless;
    }
  }
  // A group that no section speaks of: all is said in its row.
  for (const auto& [number, row] : state.groups) {
    if (row.detailed) continue;
    LogLine line;
    line.number = row.line;
    line.body = row.text;
    line.time = state.time;
    RasCommunicator communicator;
    communicator.status = row.status;
    communicator.errors = row.errors;
    communicator.size = row.size;
    events.add(line, std::move(communicator));
  }
  state = RasTextState();
}

}  // namespace ddx::formats
