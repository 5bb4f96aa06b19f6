// CaptureFile: a capture file of a process that may be running, read for one question only: does it get on? Reads what
// is new since the last time, and judges nothing. By read(), not by a mapping: another's file may be cut at any moment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture/record.h"

namespace ddx::live {

// A call that was seen to begin and not to end.
struct OpenCall {
  std::uint64_t number = 0;  // of its record
  capture::CallKind kind = capture::CallKind::unknown;
  bool async = false;
  std::uint32_t group = 0;  // 0: none
  std::uint32_t seq = 0;
  std::int32_t peer = -1;
  std::int64_t issue = 0;  // ns, CLOCK_MONOTONIC of its host
};

struct GroupNames {
  std::string name;
  std::vector<std::int32_t> ranks;  // by position; empty: not known
};

class CaptureFile {
 public:
  // nullopt: no capture file (yet).
  static std::unique_ptr<CaptureFile> open(const std::string& path);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  void refresh();

  const std::string& path() const { return path_; }
  const capture::Header& header() const { return header_; }
  // In the order of issue.
  const std::map<std::uint64_t, OpenCall>& open_calls() const { return open_; }
  // The latest time at which a call of the group, or of any, was issued, started or ended; 0: none.
  std::int64_t latest(std::uint32_t group) const;
  std::int64_t latest() const { return latest_; }
  std::uint64_t calls() const { return calls_; }
  std::int64_t step() const { return step_; }  // -1: none was told
  // An uncaught exception, as the process told it; empty: none.
  const std::string& exception() const { return exception_; }
  GroupNames group(std::uint32_t id);

 private:
  CaptureFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  bool read_header();
  void find_segments();
  void read_new();
  void check_open();
  bool take(std::uint64_t number);
  void note_times(const capture::Call& call);
  void take_call(std::uint64_t number, const capture::Call& call);
  bool record(capture::Stream stream, std::uint64_t number, void* into) const;
  std::string text(std::uint32_t id) const;

  std::string path_;
  int file_;
  capture::Header header_{};
  std::uint64_t segments_ = 0;                            // of the file, known
  std::vector<std::uint64_t> unused_;                     // places of those that belong to no stream yet
  std::map<std::uint32_t, std::uint64_t> ring_, tables_;  // segment's number -> its place in the file
  std::uint64_t next_ = 0;                                // of the ring's records
  std::map<std::uint64_t, int> missing_;  // taken by their writers, not written yet: since how many looks
  std::map<std::uint64_t, OpenCall> open_;
  std::map<std::uint32_t, std::int64_t> latest_of_;
  std::map<std::uint32_t, GroupNames> groups_;
  std::int64_t latest_ = 0;
  std::uint64_t calls_ = 0;
  std::int64_t step_ = -1;
  std::string exception_;
};

}  // namespace ddx::live
