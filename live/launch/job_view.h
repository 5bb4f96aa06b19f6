// What is known of the job at a moment: its processes and its capture files, put together.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "live/launch/capture_file.h"
#include "live/launch/hang_watch.h"
#include "live/launch/process_table.h"
#include "live/launch/stacks.h"

namespace ddx::live {

class JobView {
 public:
  explicit JobView(std::string folder);

  // Finds new capture files, and reads what is new in all.
  void refresh();
  std::vector<ProcessView> processes(const ProcessTable& table);
  // The processes worth looking into: those that recorded calls, and ranks that have not; that live.
  std::vector<Subject> subjects(const ProcessTable& table) const;

  std::size_t files() const { return files_.size(); }
  std::uint64_t calls() const;
  std::int64_t step() const;  // the least of all ranks' latest; -1
  // "7 of 8 ranks, step 12, all_reduce (group dp, seq 7), behind: rank 3"
  std::string summary(const std::vector<ProcessView>& processes) const;
  // Ranks of the table that recorded nothing.
  std::vector<std::int32_t> silent_ranks(const ProcessTable& table) const;
  // Why files stopped being written, a sentence each.
  std::vector<std::string> stopped() const;

 private:
  ProcessView view_of(CaptureFile& file, const ProcessTable& table) const;

  std::string folder_;
  std::string host_;
  std::map<std::string, std::unique_ptr<CaptureFile>> files_;  // by name
};

std::string call_name(capture::CallKind kind);

}  // namespace ddx::live
