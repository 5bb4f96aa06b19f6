// What the lines of an ops file say, before it is known which ranks run alike. Internal to the ops reader: ops_parser
// makes it, ops_builder turns it into programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/formats/importer.h"
#include "traces/formats/ops_text.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

constexpr std::uint32_t kNoneGiven = 0xffffffff;

enum class PeerForm : std::uint8_t { none, rank, position };

// One operation as written; what depends on the rank or on a group's size is left open.
struct OpsOperation {
  SignatureId base;  // of OpsFile::scratch: without peer_slot and handle, count_out only where `out_given`
  StringId group;    // name; the empty name: it belongs to no group
  std::uint32_t comm = kNoneGiven;         // what the name meant for all ranks at this line
  std::uint32_t comm_line = 0;             // and the line that said so
  std::uint32_t wait_number = kNoneGiven;  // wait N
  StringId handle;                         // async=NAME, wait NAME
  std::int32_t peer = 0;
  PeerForm peer_form = PeerForm::none;
  bool out_given = false;
  bool retired = false;
  OpState state = OpState::unknown;
  std::uint32_t call_site = kNoneGiven;
  std::uint32_t seq = kNoneGiven;
  std::uint32_t group_id = kNoneGiven;
  std::uint32_t times = kNoneGiven;  // index into OpsFile::times
};

struct OpsTimes {
  std::optional<Nanos> issue, start, end;
};

// "R pg NAME = ...": from here on, on these ranks.
struct OpsScopedGroup {
  StringId name;
  CommId comm;
};

// "R in GROUP ...": what a process says of a communicator.
struct OpsJoin {
  StringId group;
  std::uint32_t comm = kNoneGiven;
  std::uint32_t comm_line = 0;
  CommProgress progress;
  std::optional<std::uint32_t> position;
};

enum class StatementKind : std::uint8_t { operation, repeat, end, scoped_group, record, join };

struct OpsStatement {
  StatementKind kind = StatementKind::operation;
  std::uint32_t line = 0;
  std::uint32_t detail = 0;  // index into the table of its kind
  std::uint32_t first_interval = 0;
  std::uint32_t interval_count = 0;  // of OpsFile::intervals, ascending and apart
};

struct OpsFile {
  std::uint32_t world = 0;
  std::vector<RankInterval> intervals;
  std::vector<OpsStatement> statements;
  std::vector<OpsOperation> operations;
  std::vector<OpsTimes> times;
  std::vector<std::uint64_t> repeats;
  std::vector<OpsScopedGroup> scoped_groups;
  std::vector<RankRecord> records;  // "R record ...": as templates
  std::vector<OpsJoin> joins;
  std::vector<RankInterval> absent;  // ascending and apart
  std::uint32_t absent_line = 0;
  Trace scratch;  // base signatures
};

// What is left of ImportOptions::max_ops_per_file: everything that costs memory or time in proportion to a number in
// the text, or to lines times ranks, is taken from it. One unit is about a row: some ten bytes, some ten nanoseconds.
class OpsBudget {
 public:
  explicit OpsBudget(std::uint64_t rows) : left_(rows) {}
  void take(std::uint64_t rows, const OpsPlace& place) {
    if (rows > left_) place.fail("this file describes more than ddx holds of one file");
    left_ -= rows;
  }

 private:
  std::uint64_t left_;
};

// Interns communicators, call sites and strings into `trace`; everything else goes to the result.
OpsFile parse_ops(const Source& source, Trace& trace, OpsBudget& budget);
// Programs and records of all ranks.
void build_ops(const Source& source, OpsFile& file, Evidence& out, OpsBudget& budget);

}  // namespace ddx::formats
