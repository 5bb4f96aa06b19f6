// Operations and communicators of NCCL's log, gathered into a Trace: one record per process, or per device where one
// process drives several.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/formats/log_events.h"
#include "traces/formats/log_prefix.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

// Who printed a line.
struct NcclWriter {
  std::string_view host;
  std::int64_t pid = 0;
  std::optional<std::int64_t> device;
};

class NcclOps {
 public:
  NcclOps(Evidence& out, const ImportOptions& options);

  // "AllReduce: opCount 1e7 sendbuff .. count .. datatype .. op .. root .. comm .. [nranks=8] stream ..". False where
  // the message is no such line. `rank`: of the writer, where its launcher or its file's name states it.
  bool add_op(const LogLine& line, const NcclWriter& writer, std::optional<RankId> rank, std::string_view message);
  void add_comm(const NcclWriter& writer, std::optional<RankId> rank, const CommInit& init);
  void set_version(std::string_view version) { version_ = version; }
  void set_attempt(std::optional<std::uint32_t> attempt) { attempt_ = attempt; }

  // Writes the records, and gives events that have a process but no rank the rank of that process.
  void finish(LogEventWriter& events);

 private:
  struct Comm {
    std::string id;  // commId
    std::optional<std::uint32_t> rank;
    std::uint32_t nranks = 0;
    std::optional<std::int64_t> device;
    std::optional<std::size_t> parent;  // index of a communicator of the same process
    std::optional<std::int64_t> child_count;
    std::optional<std::int64_t> color;
    std::uint32_t ordinal = 0;   // among the process's communicators of this size, in order of first use
    std::uint32_t children = 0;  // splits made of it
    bool used = false;
    bool first_op = true;      // none seen yet
    bool mixed = false;        // used under several current devices
    bool begins_late = false;  // its first operation here is not its first
  };
  // The last op of a process waits for the next: ops with one count form a group.
  struct Waiting {
    Op op;
    std::uint64_t count = 0;
    bool any = false;
  };
  struct Process {
    std::string host;
    std::int64_t pid = 0;
    std::optional<RankId> stated;  // by the launcher, the file's name, or RCCL's "globalrank"
    std::vector<Comm> comms;       // slot: index
    std::unordered_map<std::uint64_t, std::size_t> by_pointer;
    std::unordered_map<std::uint64_t, std::uint32_t> streams;
    std::unordered_map<std::int32_t, std::uint32_t> peer_slots;
    std::vector<std::int32_t> peers;
    std::unordered_map<std::uint32_t, std::uint32_t> used_by_size;
    std::vector<std::int64_t> devices;  // distinct ones of the brackets
    Program program;
    Waiting waiting;
    std::uint32_t groups = 0;
    std::optional<std::uint32_t> attempt;
  };
  // What finish() makes of a process: one rank, or one per device.
  struct Part {
    std::size_t process = 0;
    std::optional<std::int64_t> device;  // absent: the whole process
    std::vector<std::size_t> slots;      // of the process's communicators: those of this part
    std::optional<RankId> rank;
    bool guessed = false;
  };

  // A communicator as one part sees it.
  struct Seen {
    std::string name;
    bool synthesized = false;
    std::uint32_t nranks = 0;
    std::optional<std::uint32_t> position;
  };
  // What the file's ranks together say of one communicator.
  struct Membership {
    std::map<std::uint32_t, RankId> by_position;
    std::vector<RankId> unplaced;
    bool conflict = false;
    std::vector<RankId> members;  // by position; empty: not all known
    std::optional<CommId> comm;   // once written
  };
  using Memberships = std::map<std::pair<std::string, std::uint32_t>, Membership>;

  Process* process_of(const NcclWriter& writer, std::optional<RankId> rank);
  std::optional<std::size_t> slot_of(Process& process, std::uint64_t pointer, std::uint32_t nranks);
  std::optional<std::size_t> new_slot(Process& process, std::uint64_t pointer);
  static void flush(Process& process);
  bool drives_several(const Process& process);
  static void number_by_device(Process& process);
  std::vector<Part> parts();
  std::optional<RankId> init_rank(const Part& part) const;
  void settle_ranks(std::vector<Part>& parts) const;
  void guess_by_device(std::vector<Part>& parts) const;
  std::string name_of(const Process& process, std::size_t slot, bool& synthesized, int depth) const;
  Seen seen(const Process& process, std::size_t slot) const;
  Memberships memberships(const std::vector<Part>& parts) const;
  CommId intern_comm(const Seen& seen, std::vector<RankId> members);
  // The programs of one process's parts, which stand together in the list that begins at `first`.
  std::vector<Program> take_programs(const std::vector<Part>& parts, std::size_t first);
  void write_record(const Part& part, Memberships& memberships, Program&& program);
  void name_writers(const std::vector<Part>& parts, LogEventWriter& events) const;

  Evidence& out_;
  std::uint64_t max_ops_;
  std::uint64_t ops_ = 0;
  std::string version_;
  std::optional<std::uint32_t> attempt_;
  std::deque<Process> processes_;
  std::unordered_map<std::string, std::size_t> by_name_;  // "host pid"
  std::size_t last_ = 0;                                  // the process of the last line
};

}  // namespace ddx::formats
