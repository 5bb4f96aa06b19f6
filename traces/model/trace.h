// Trace: what the ranks of a job did, or would do, as columns. One op is a row of a Program; ranks that run the same
// program share it and bind its communicators and peers by slot. At most 40 bytes a row without its call site; strings,
// signatures and call sites are interned once a trace.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/units.h"
#include "traces/model/op.h"

namespace ddx {

// A place in the user's code. Frames are innermost first.
struct Frame {
  StringId function;
  StringId file;
  std::uint32_t line = 0;
  bool operator==(const Frame&) const = default;
};
struct CallSite {
  std::vector<Frame> frames;
  bool operator==(const CallSite&) const = default;
};

// A communicator is (name, ordered member list): one name with other members is another communicator, and a finding.
struct Communicator {
  StringId name;
  StringId description;                        // PyTorch's group_desc; empty: none
  std::vector<RankId> members;                 // global ranks by position; empty: not recorded
  std::optional<std::uint32_t> declared_size;  // what the process said, where the list is not recorded
  bool synthesized = false;                    // the name was made by a reader for lack of one: trust it less
  bool assumed = false;                        // no input lists the members: they were taken for it (list_members)

  // Number of members, as listed or else as declared; 0: not known.
  std::uint32_t size() const {
    return members.empty() ? declared_size.value_or(0) : static_cast<std::uint32_t>(members.size());
  }
  bool operator==(const Communicator&) const = default;
};

// The body [begin, end) of rows runs `count` times. Loops nest properly; outer loops come first.
struct Loop {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint64_t count = 1;
  bool operator==(const Loop&) const = default;
};

// One row as a value: what readers append and consumers read.
struct Op {
  SignatureId signature;
  std::optional<std::uint16_t> comm_slot;  // index into RankRecord::comms
  std::optional<std::uint32_t> seq;        // collectives: per communicator; p2p: the recorder's own p2p counter
  std::optional<std::uint32_t> group;      // ops with one group id are posted together
  std::optional<CallSiteId> call_site;
  std::optional<Nanos> issue;  // enqueue on the host
  std::optional<Nanos> start;  // first seen running
  std::optional<Nanos> end;    // first seen complete
  OpState state = OpState::unknown;
  bool retired = false;  // the recorder's watchdog let go of it
};

// Slot of the communicator, and what is called in it.
using UnlikeCalls = std::set<std::pair<std::uint16_t, SignatureId>>;

class Program {
 public:
  OpId append(const Op& op);
  std::size_t size() const { return signature_.size(); }
  Op at(OpId id) const;

  SignatureId signature(std::size_t row) const { return signature_[row]; }
  OpState state(std::size_t row) const { return static_cast<OpState>(flags_[row] & kStateMask); }
  bool retired(std::size_t row) const { return (flags_[row] & kRetired) != 0; }
  std::optional<std::uint16_t> comm_slot(std::size_t row) const {
    if (row >= comm_slot_.size() || comm_slot_[row] == kNone16) return std::nullopt;
    return comm_slot_[row];
  }
  std::optional<std::uint32_t> seq(std::size_t row) const {
    if (row >= seq_.size() || seq_[row] == kNone32) return std::nullopt;
    return seq_[row];
  }
  std::optional<std::uint32_t> group(std::size_t row) const;
  std::optional<CallSiteId> call_site(std::size_t row) const;
  std::optional<Nanos> issue(std::size_t row) const { return time_at(issue_, row); }
  std::optional<Nanos> start(std::size_t row) const { return time_at(start_, row); }
  std::optional<Nanos> end(std::size_t row) const { return time_at(end_, row); }
  void set_state(std::size_t row, OpState state);
  void set_seq(std::size_t row, std::uint32_t seq);

  // Its operations in communicators, those that are alike once.
  UnlikeCalls unlike_calls() const;

  std::vector<Loop> loops;

  // For merging traces: rewrites the interned ids of every row.
  void remap(const std::vector<SignatureId>& signatures, const std::vector<CallSiteId>& call_sites);
  void reserve(std::size_t rows);
  std::size_t bytes() const;  // what its columns take

 private:
  static constexpr std::uint8_t kStateMask = 0x07;
  static constexpr std::uint8_t kRetired = 0x08;
  static constexpr std::uint32_t kNone32 = 0xffffffff;
  static constexpr std::uint16_t kNone16 = 0xffff;
  static constexpr Nanos kNoTime = INT64_MIN;

  static std::optional<Nanos> time_at(const std::vector<Nanos>& column, std::size_t row) {
    if (column.empty() || column[row] == kNoTime) return std::nullopt;
    return column[row];
  }

  // Optional columns stay empty until the first row that has a value.
  std::vector<SignatureId> signature_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint16_t> comm_slot_;
  std::vector<std::uint32_t> seq_;
  std::vector<std::uint32_t> group_;
  std::vector<std::uint32_t> call_site_;
  std::vector<Nanos> issue_, start_, end_;
};

// Walks a program in execution order, running its loops without unrolling them.
class OpCursor {
 public:
  explicit OpCursor(const Program& program);
  bool done() const { return row_ >= program_->size(); }
  OpId op() const { return OpId(row_); }
  void next();

 private:
  struct Active {
    std::size_t loop;
    std::uint64_t left;
  };
  void settle();  // enters loops that begin here and leaves those that end here, until row_ is a row to run

  const Program* program_;
  std::size_t row_ = 0;
  std::size_t next_loop_ = 0;
  std::vector<Active> active_;
};

// How long the latest collectives of one communicator may take, and the sequence number from which on all that are
// recorded say so: programs shorten the limit once the first step is done.
struct CallLimit {
  Nanos timeout = 0;
  std::uint32_t since = 0;
};

// What a process gave for one communicator: counters (PyTorch's pg_status) and its time-out (timeout_ms). Absent is
// unknown; "none yet" is 0.
struct CommProgress {
  std::optional<std::uint64_t> last_enqueued;
  std::optional<std::uint64_t> last_started;
  std::optional<std::uint64_t> last_completed;
  std::optional<CallLimit> limit;
  std::optional<std::uint64_t> in_program;  // collectives of a whole program of which the rows are a part
};

// One process's record: a dump of one rank, a rank of an ops file, one process in a log.
struct RankRecord {
  std::optional<RankId> rank;  // absent: the evidence does not say
  bool rank_guessed = false;   // taken from a hint (device index, order), not from a statement
  ProgramId program;
  std::vector<CommId> comms;             // by slot
  std::vector<std::uint32_t> comm_rank;  // by slot: this process's position in that communicator; kNoPosition
  std::vector<CommProgress> progress;    // by slot
  std::vector<std::int32_t> peers;       // by slot: position in the op's communicator (may be out of range: a finding)
  std::optional<InputId> input;
  std::string host;
  std::optional<std::int64_t> pid;
  std::optional<std::uint32_t> attempt;
  std::string backend;             // "nccl" "gloo" ...; empty: unknown
  std::string library_version;     // of the communication library, as recorded
  std::string device;              // the GPU's model, as recorded: "NVIDIA A100-SXM4-80GB"
  bool head_lost = false;          // a ring: entries before the first row are gone (unknown, not missing)
  bool tail_lost = false;          // the file was cut: rows behind the last one are unknown
  bool snapshot = false;           // states are those of the moment of the dump (a recorder), not a whole program
  bool whole_program = false;      // the rows are all that this rank will ever do (an ops file), not a buffer of it
  bool stream_ordered = false;     // ops return at once and run in order on a stream (NCCL and kin)
  bool sends_end_locally = false;  // a send is over once its data left: it never waits for its receive (Chakra)
  std::optional<bool> timing;      // whether `started` can be known at all

  static constexpr std::uint32_t kNoPosition = 0xffffffff;
};

class StringTable {
 public:
  StringTable();
  StringTable(const StringTable& other);
  StringTable& operator=(const StringTable& other);
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  StringId intern(std::string_view text);
  std::string_view at(StringId id) const { return strings_[id.value]; }
  std::size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // a deque: views into it stay valid
  std::unordered_map<std::string_view, StringId, KeyedHash> index_;
};

class Trace {
 public:
  StringTable strings;  // id 0 is the empty string
  std::vector<Program> programs;
  std::vector<RankRecord> ranks;            // in order of input; several may claim one rank
  std::optional<std::uint32_t> world_size;  // as stated by the evidence; absent: not stated

  SignatureId intern(const Signature& signature);
  SignatureId intern(Signature&& signature);
  CallSiteId intern(const CallSite& site);
  CallSiteId intern(CallSite&& site);
  CommId intern(const Communicator& communicator);
  CommId intern(Communicator&& communicator);
  // Fills in what its file could not know; `assumed`: nor does anybody else. An equal communicator may exist: it stays
  // another id.
  void list_members(CommId id, std::vector<RankId> members, bool assumed);

  const std::vector<Signature>& signatures() const { return signatures_; }
  const std::vector<CallSite>& call_sites() const { return call_sites_; }
  const std::vector<Communicator>& communicators() const { return communicators_; }

  const Signature& signature(SignatureId id) const { return signatures_[id.value]; }
  const CallSite& call_site(CallSiteId id) const { return call_sites_[id.value]; }
  const Communicator& communicator(CommId id) const { return communicators_[id.value]; }
  const Program& program(const RankRecord& record) const { return programs[record.program.value]; }
  std::string_view text(StringId id) const { return strings.at(id); }

  // The position (in the op's communicator) of the root or peer that `signature` names by slot in `record`.
  std::optional<std::int32_t> peer(const RankRecord& record, const Signature& signature) const;

  // Appends all of `other`, its interned ids rewritten. `input_shift` is added to the input ids of its records.
  void merge(Trace&& other, std::uint32_t input_shift);

 private:
  std::vector<Signature> signatures_;
  std::vector<CallSite> call_sites_;
  std::vector<Communicator> communicators_;
  std::unordered_multimap<std::size_t, std::uint32_t> signature_index_, call_site_index_, communicator_index_;
};

}  // namespace ddx
