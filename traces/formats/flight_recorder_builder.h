// FlightRecorderBuilder: what the pickle and the JSON reader have in common. They hand it the parts of one dump as they
// meet them, in any order; finish() makes one RankRecord with one Program of it. Parts that repeat in each entry
// (names, sizes, groups, stacks) are given once and named by handle afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/importer.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

// Handle of something that a builder was given; 0xffffffff is none.
using RecorderHandle = std::uint32_t;
constexpr RecorderHandle kNoHandle = 0xffffffff;

struct RecorderEntry {
  std::optional<std::int64_t> record_id, pg_id, collective_seq, p2p_seq;
  std::optional<std::int64_t> created, started, completed;  // nanoseconds; 0 or below: none
  std::optional<std::int64_t> timeout_ms;                   // 0 or below: none
  std::optional<bool> is_p2p, retired;
  OpState state = OpState::unknown;
  bool has_duration = false;
  bool has_known_key = false;
  RecorderHandle name = kNoHandle;
  RecorderHandle group = kNoHandle;
  RecorderHandle sizes_in = kNoHandle, sizes_out = kNoHandle;
  RecorderHandle splits_in = kNoHandle, splits_out = kNoHandle;
  DataType type_in = DataType::unknown, type_out = DataType::unknown;  // of the first tensor
  std::optional<CallSiteId> call_site;
};

// A value as either format has it.
struct RecorderScalar {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, other };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // boolean: 0 or 1
  std::string_view text;
};

class FlightRecorderBuilder {
 public:
  using Sizes = std::vector<std::vector<std::int64_t>>;

  // What can be wrong with a dump, one counter each.
  enum class Trouble : std::uint8_t {
    unknown_key,
    wrong_type,
    unknown_op,
    unknown_dtype,
    count_overflow,
    empty_entry,
    too_many_entries,
    too_many_groups,
    too_large,
    bad_text,
    process_wide_seq,
    count_of_troubles
  };

  FlightRecorderBuilder(const Source& source, const ImportOptions& options, Evidence& out);

  // Takes `elements` from what the file may make ddx hold or look at beyond its own size: in a pickle, a long list
  // costs two bytes each time that it is named again. False, and counted: too much, leave it out.
  bool afford(std::uint64_t elements);

  RecorderHandle op_name(std::string_view profiling_name);
  RecorderHandle group(std::string_view name, std::string_view description);
  RecorderHandle sizes(std::span<const std::vector<std::int64_t>> tensors);  // one list a tensor
  RecorderHandle splits(const std::vector<std::int64_t>& elements);
  DataType type(std::string_view name);
  Frame frame(std::string_view function, std::string_view file, std::int64_t line);
  std::optional<CallSiteId> call_site(std::vector<Frame> frames);

  // False: the value has no type that the field can have; the field stays absent. Only for fields that hold one value.
  bool assign(RecorderEntry& entry, RecorderField field, const RecorderScalar& value);
  void add(const RecorderEntry& entry);
  // Something was read that speaks of the job.
  bool usable() const { return !rows_.empty() || !configured_.empty() || !status_.empty(); }

  void version(std::string_view text);
  void library_version(std::string_view text);
  // One group of pg_config. `members` nullopt: not recorded.
  void add_group(std::string_view name, std::string_view description, std::optional<std::vector<RankId>> members);
  // One value of pg_status. `key`: "last_enqueued_collective" and kin. False: unknown key.
  bool add_status(std::int64_t pg_id, std::string_view key, std::int64_t value);

  void count(Trouble trouble, std::string_view detail);
  // The file was cut or damaged at `offset`; what was read so far stands.
  void cut(std::uint64_t offset, std::string_view why);
  // The dump is whole, and this many bytes follow it.
  void trailing(std::uint64_t bytes);

  void finish();

 private:
  struct Name {
    OpKind kind;
    StringId text;
    std::optional<std::uint32_t> peer_slot;
    std::uint32_t backend;
    bool may_end_batch;
  };
  struct Group {
    StringId name, description;
    std::optional<std::int64_t> pg_id;
    std::optional<CallLimit> limit;
  };
  struct ConfiguredGroup {
    StringId name, description;
    std::vector<RankId> members;
  };
  struct Tensors {
    std::optional<std::uint64_t> count;
    bool none = false;  // an empty list was recorded
    Sizes shapes;
  };
  struct Row {
    Nanos created, started, completed;  // 0: absent
    SignatureId signature;
    RecorderHandle group;
    std::uint32_t seq, batch, call_site;  // 0xffffffff: absent
    OpState state;
    bool retired;
  };
  // The latest operations of one group that share a sequence number: a batch if there are more than one.
  struct Run {
    std::uint32_t seq = 0xffffffff;
    std::uint32_t first_row = 0;
    std::uint32_t batch = 0xffffffff;
  };
  struct SignatureKey {
    std::array<std::uint32_t, 6> words;
    bool operator==(const SignatureKey&) const = default;
  };
  struct WordsHash {
    std::size_t operator()(const SignatureKey& key) const;
    std::size_t operator()(const std::vector<std::int64_t>& words) const;
  };
  struct Tally {
    std::uint64_t count = 0;
    std::string detail;
  };

  StringId text(std::string_view text);
  std::uint32_t seq_of(const RecorderEntry& entry, bool p2p);
  bool ends_batch(const RecorderEntry& entry, const Run* run, std::uint32_t seq) const;
  void join_batch(Run& run, std::uint32_t seq, Row& row, bool marker);
  void note_limit(const RecorderEntry& entry, std::uint32_t seq);
  SignatureId signature(const RecorderEntry& entry, OpKind kind);
  void note_evidence(const RecorderEntry& entry);

  std::uint32_t backend(std::string_view name);
  std::uint32_t peer_slot(std::int32_t peer);
  std::string main_backend() const;
  bool is_torchcomms() const;
  void renumber();
  void settle_retired(const RankRecord& record);
  void name_the_nameless();
  std::vector<std::uint16_t> bind_groups(RankRecord& record);
  void bind_progress(RankRecord& record, const std::vector<std::uint16_t>& slots);
  void bind_counters(RankRecord& record, const std::vector<std::uint16_t>& slots);
  Program program(const std::vector<std::uint16_t>& slots);
  void state_world_size();
  void report();

  const Source& source_;
  const ImportOptions& options_;
  Evidence& out_;
  std::uint64_t elements_left_;

  std::vector<Name> names_;
  std::vector<StringId> backends_;
  std::vector<std::uint64_t> backend_uses_;
  std::unordered_map<std::uint32_t, std::uint32_t, KeyedHash> backend_index_;  // by text
  std::unordered_map<std::string, RecorderHandle, KeyedHash, std::equal_to<>> name_index_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, RecorderHandle, KeyedHash> group_index_;
  std::vector<Tensors> tensors_;
  std::unordered_map<std::vector<std::int64_t>, RecorderHandle, WordsHash> tensors_index_;
  std::vector<std::vector<std::uint64_t>> splits_;
  std::unordered_map<std::vector<std::int64_t>, RecorderHandle, WordsHash> splits_index_;
  std::unordered_map<SignatureKey, SignatureId, WordsHash> signatures_;
  std::vector<std::int32_t> peers_;
  std::unordered_map<std::int64_t, std::uint32_t, KeyedHash> peer_index_;

  std::vector<Row> rows_;
  std::vector<Run> runs_;  // two a group: collectives, point-to-point
  std::uint32_t batches_ = 0;

  std::vector<ConfiguredGroup> configured_;
  std::unordered_map<std::int64_t, CommProgress, KeyedHash> status_;
  std::string library_version_;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> version_;

  // What the entries taken together show.
  std::optional<std::int64_t> first_record_;
  bool timed_ = false;           // some entry was seen to start
  bool saw_completion_ = false;  // some entry was seen to complete
  bool saw_p2p_counter_ = false;
  bool has_p2p_ops_ = false;
  bool steady_offset_ = true;  // collective_seq_id - record_id is the same in all entries
  std::optional<std::int64_t> offset_;

  bool cut_ = false;
  std::array<Tally, static_cast<std::size_t>(Trouble::count_of_troubles)> tallies_;
};

}  // namespace ddx::formats
