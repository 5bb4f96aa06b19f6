#include "traces/formats/progress_log.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxWhat = 120;
constexpr std::size_t kMaxSources = 1U << 16;

// Looks for `word` (lower case; its first letter may be a capital in the text) as a word of its own, and gives what
// follows it. The search is for the rest of the word, which the library does fast.
std::optional<std::string_view> behind_word(std::string_view text, std::string_view word) {
  const std::string_view tail = word.substr(1);
  const char capital = static_cast<char>(word.front() - 'a' + 'A');
  for (std::size_t at = text.find(tail); at != std::string_view::npos; at = text.find(tail, at + 1)) {
    if (at == 0 || (text[at - 1] != word.front() && text[at - 1] != capital)) continue;
    const std::size_t end = at + tail.size();
    if (at > 1 && (is_letter(text[at - 2]) || is_digit(text[at - 2]))) continue;
    if (end < text.size() && is_letter(text[end])) continue;
    return text.substr(end);
  }
  return std::nullopt;
}

// ": 12", "=12", "[12]", "  12": a number close behind.
bool number_follows(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && at < 12 && std::string_view(" :=[#(").find(text[at]) != std::string_view::npos) ++at;
  return at < text.size() && is_digit(text[at]);
}

std::optional<IdleNotice> parse_idle(std::string_view body) {
  IdleNotice notice;
  if (contains(body, "memory broadcast block found in") || contains(body, "No available block found in")) {
    notice.what = "no shared memory broadcast block";
    const auto seconds = number_after(body, "found in ");
    if (seconds && *seconds >= 0 && *seconds < 1'000'000'000) notice.interval = *seconds * kSecond;
    return notice;
  }
  if (contains(body, "queue empty") || contains(body, "queue is empty")) {
    notice.what = "queue empty";
    return notice;
  }
  if (contains(body, "Running: 0 reqs") && contains(body, "Waiting: 0 reqs")) {
    notice.what = "no requests";
    return notice;
  }
  return std::nullopt;
}

bool ends_word(std::string_view text, std::size_t at) {
  return at >= text.size() || !(is_letter(text[at]) || is_digit(text[at]) || text[at] == '_');
}

// A measure of something that had no samples is no number either, and harms nobody: "val_acc: nan".
bool names_a_measure(std::string_view before) {
  while (!before.empty() && (before.back() == ' ' || before.back() == ':' || before.back() == '=')) {
    before.remove_suffix(1);
  }
  const std::size_t blank = before.find_last_of(" ,;[({|");
  const std::string label = lower(blank == std::string_view::npos ? before : before.substr(blank + 1));
  if (contains(label, "loss") || contains(label, "grad")) return false;
  static constexpr std::string_view kMeasures[] = {"acc",   "eval",   "val_",  "valid",     "test",    "auc",
                                                   "f1",    "bleu",   "rouge", "recall",    "metric",  "score",
                                                   "speed", "sample", "time",  "precision", "tokens_", "eta"};
  return std::any_of(std::begin(kMeasures), std::end(kMeasures),
                     [&label](std::string_view measure) { return contains(label, measure); });
}

// Whether the "nan" at `at` stands as a value, or is said to be found; not a setting that speaks of NaN.
bool is_bad_value(std::string_view body, std::size_t at) {
  if (!ends_word(body, at + 3) || (at > 0 && !ends_word(body, at - 1))) return false;
  const std::string_view before = body.substr(0, at);
  const std::string_view after = body.substr(at + 3);
  const std::string_view close = trimmed(before.size() > 4 ? before.substr(before.size() - 4) : before);
  if (close.ends_with(":") || close.ends_with("=")) return !names_a_measure(before);
  if (close.ends_with(" is") || close == "is") return true;
  for (std::string_view verb : {"found", "detected", "encountered"}) {
    if (behind_word(after, verb) || behind_word(before, verb)) return true;
  }
  return false;
}

bool reports_nan(std::string_view body) {
  if (contains(body, "!isnan(") && contains(body, "failed")) return true;
  if (const auto count = number_after(body, "number of nan iterations:")) return *count > 0;
  for (std::string_view spelling : {"nan", "NaN", "NAN"}) {
    for (std::size_t at = body.find(spelling); at != std::string_view::npos; at = body.find(spelling, at + 3)) {
      if (is_bad_value(body, at)) return true;
    }
  }
  return false;
}

bool shows_progress(std::string_view body) {
  // Comments and tables of settings count steps too.
  if (body.starts_with("#")) return false;
  if (contains(body, "it/s") || contains(body, "s/it")) return contains(body, "/");
  if (behind_word(body, "finished") && (behind_word(body, "request") || behind_word(body, "step") ||
                                        behind_word(body, "epoch") || behind_word(body, "iteration"))) {
    return true;
  }
  for (std::string_view word : {"step", "global_step", "iteration", "iter", "epoch", "loss"}) {
    const auto rest = behind_word(body, word);
    if (rest && number_follows(*rest)) return true;
  }
  return false;
}

// Overwrites the last event of a run of progress lines, or begins one.
void add_progress(const LogLine& line, ProgressState& state, LogEventWriter& events) {
  const bool full = state.by_source.size() >= kMaxSources && !state.by_source.contains(line.source);
  ProgressState::Run& run = state.by_source[full ? 0 : line.source];
  const ProgressNotice notice{printable(trimmed(line.body), kMaxWhat)};
  const std::size_t others = events.size() - state.written;
  if (run.kept >= 2 && run.others == others) {
    LogEvent& event = events.at(run.last);
    event.line = line.number;
    event.text = printable(trimmed(line.body), LogEventWriter::kMaxText);
    event.time = line.time;
    event.time_of_day = line.time && line.time_of_day;
    event.fact = notice;
    return;
  }
  if (run.others != others) run.kept = 0;
  run.last = events.size();
  if (events.add(line, notice) == nullptr) return;
  ++state.written;
  run.others = others;
  ++run.kept;
}

}  // namespace

bool read_progress_line(const LogLine& line, ProgressState& state, LogEventWriter& events) {
  const std::string_view body = line.body.substr(0, 1024);
  if (auto idle = parse_idle(body)) {
    events.add(line, std::move(*idle));
    return true;
  }
  if (reports_nan(body)) {
    events.add(line, NanNotice{printable(trimmed(body), kMaxWhat)});
    return true;
  }
  if (!shows_progress(body)) return false;
  add_progress(line, state, events);
  return true;
}

}  // namespace ddx::formats
