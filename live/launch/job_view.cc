#include "live/launch/job_view.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/printable.h"
#include "live/launch/proc_files.h"

namespace ddx::live {
namespace {

constexpr std::size_t kMostFiles = 1 << 16;
constexpr std::size_t kMostOpenTold = 64;

Waiting waiting(CaptureFile& file, const OpenCall& call, Nanos now) {
  Waiting told;
  const GroupNames group = file.group(call.group);
  told.what = call_name(call.kind);
  if (call.group != 0) {
    told.what +=
        fmt::format(" (group {}, seq {})", group.name.empty() ? "?" : printable_text(group.name, 80), call.seq);
  }
  told.members = group.ranks;
  told.async = call.async;
  told.since = now - call.issue;
  told.group_still = now - file.latest(call.group);
  return told;
}

}  // namespace

std::string call_name(capture::CallKind kind) {
  static constexpr const char* kNames[] = {"call",   "all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                           "reduce", "gather",     "scatter",        "all_to_all", "barrier",
                                           "send",   "recv",       "new_group",      "split_group"};
  const auto at = static_cast<std::size_t>(kind);
  return at < std::size(kNames) ? kNames[at] : "call";
}

JobView::JobView(std::string folder) : folder_(std::move(folder)) {
  char name[sizeof(capture::Header::host)] = {};
  ::gethostname(name, sizeof(name) - 1);
  host_ = name;
}

void JobView::refresh() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".ddx") || files_.contains(name) || files_.size() >= kMostFiles) continue;
    if (auto file = CaptureFile::open(entry.path().string())) files_[name] = std::move(file);
  }
  for (const auto& [name, file] : files_) file->refresh();
}

ProcessView JobView::view_of(CaptureFile& file, const ProcessTable& table) const {
  const capture::Header& header = file.header();
  ProcessView view;
  view.rank = header.rank;
  view.pid = header.pid;
  view.host = header.host;
  view.exception = file.exception();
  const Nanos now = monotonic();
  view.still = now - std::max(file.latest(), header.start_monotonic);
  const ProcessRecord* record = table.find(header.pid);
  if (record != nullptr && record->start_ticks != header.process_start) record = nullptr;
  const auto stat = read_stat(static_cast<pid_t>(header.pid));
  const bool there = stat && stat->start_ticks == header.process_start && stat->state != 'Z' && stat->state != 'X';
  if (there) {
    view.life = stat->state == 'T' || stat->state == 't' ? Life::stopped : Life::running;
  } else {
    const bool known = record != nullptr && (record->status || record->told);
    const bool well = known ? how_it_ended(*record) == "exited with status 0" : header.finished_realtime != 0;
    view.life = well ? Life::left : Life::died;
    view.how = record != nullptr ? how_it_ended(*record) : "ended; with what status is not known";
    view.dead_for = record != nullptr && record->ended != 0 ? realtime() - record->ended : view.still;
  }
  if (!there) return view;
  for (const auto& [number, call] : file.open_calls()) {
    if (view.open.size() >= kMostOpenTold) break;
    view.open.push_back(waiting(file, call, now));
  }
  return view;
}

std::vector<ProcessView> JobView::processes(const ProcessTable& table) {
  std::vector<ProcessView> views;
  for (const auto& [name, file] : files_) {
    // Others' clocks and processes are not this machine's.
    if (host_ == file->header().host) views.push_back(view_of(*file, table));
  }
  // Ranks that died before their first call have no file.
  std::set<std::int64_t> pids;
  for (const ProcessView& view : views) pids.insert(view.pid);
  for (const ProcessRecord& record : table.records()) {
    // A rank's helpers end as they like; what began it is what others wait for.
    if (record.rank < 0 || record.is_helper || record.ended == 0 || pids.contains(record.pid)) continue;
    if (!record.status && !record.told) continue;
    ProcessView view;
    view.rank = record.rank;
    view.pid = record.pid;
    view.host = host_;
    view.how = how_it_ended(record);
    view.life = view.how == "exited with status 0" ? Life::left : Life::died;
    view.dead_for = realtime() - record.ended;
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<Subject> JobView::subjects(const ProcessTable& table) const {
  std::vector<Subject> found;
  std::set<pid_t> pids;
  for (const auto& [name, file] : files_) {
    const capture::Header& header = file->header();
    const auto pid = static_cast<pid_t>(header.pid);
    const auto stat = read_stat(pid);
    if (host_ != header.host || !stat || stat->start_ticks != header.process_start) continue;
    if (pids.insert(pid).second) found.push_back({header.rank, pid, header.program});
  }
  for (const ProcessRecord& record : table.records()) {
    if (record.ended != 0 || record.rank < 0 || pids.contains(record.pid)) continue;
    const bool has_file =
        std::any_of(found.begin(), found.end(), [&](const Subject& s) { return s.rank == record.rank; });
    if (!has_file) found.push_back({record.rank, record.pid, record.command});
  }
  return found;
}

std::uint64_t JobView::calls() const {
  std::uint64_t sum = 0;
  for (const auto& [name, file] : files_) sum += file->calls();
  return sum;
}

std::int64_t JobView::step() const {
  std::int64_t least = -1;
  for (const auto& [name, file] : files_) {
    if (file->step() >= 0) least = least < 0 ? file->step() : std::min(least, file->step());
  }
  return least;
}

std::string JobView::summary(const std::vector<ProcessView>& processes) const {
  std::set<std::int32_t> ranks;
  std::map<std::string, std::size_t> current;
  for (const ProcessView& process : processes) {
    if (process.life == Life::running || process.life == Life::stopped) ranks.insert(process.rank);
    if (!process.open.empty()) ++current[process.open.front().what];
  }
  std::int32_t world = -1;
  for (const auto& [name, file] : files_) world = std::max(world, file->header().world_size);
  std::string text =
      world > 0 ? fmt::format("{} of {} ranks", ranks.size(), world) : fmt::format("{} ranks", ranks.size());
  if (const std::int64_t at = step(); at >= 0) text += fmt::format(", step {}", at);
  const auto most = std::max_element(current.begin(), current.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == current.end()) return text;
  text += fmt::format(", {} in {}", most->second, most->first);
  std::string behind;
  std::size_t count = 0;
  for (const ProcessView& process : processes) {
    const bool in_it = !process.open.empty() && process.open.front().what == most->first;
    if (process.rank < 0 || in_it || process.life != Life::running || ++count > 4) continue;
    behind += (behind.empty() ? "" : ",") + std::to_string(process.rank);
  }
  if (count == 0) return text;
  return text + fmt::format(", not there: {} {}{}", count == 1 ? "rank" : "ranks", behind, count > 4 ? ",..." : "");
}

std::vector<std::int32_t> JobView::silent_ranks(const ProcessTable& table) const {
  std::set<std::int32_t> ranks;
  for (const ProcessRecord& record : table.records()) {
    if (record.rank >= 0) ranks.insert(record.rank);
  }
  for (const auto& [name, file] : files_) ranks.erase(file->header().rank);
  return {ranks.begin(), ranks.end()};
}

std::vector<std::string> JobView::stopped() const {
  std::vector<std::string> sentences;
  for (const auto& [name, file] : files_) {
    const auto why = static_cast<capture::Stopped>(file->header().stopped);
    if (why == capture::Stopped::no) continue;
    const char* text = why == capture::Stopped::disk_full         ? "the disk was full"
                       : why == capture::Stopped::limit_of_tables ? "it met more names than a file holds"
                       : why == capture::Stopped::no_mapping      ? "the system had no memory for it"
                                                                  : "of a fault of ddx";
    sentences.push_back(
        fmt::format("the recording of {} stopped early: {}", who(file->header().rank, file->header().pid), text));
  }
  return sentences;
}

}  // namespace ddx::live
