#include <fmt/format.h>

#include "base/error.h"
#include "traces/formats/flight_recorder.h"
#include "traces/formats/flight_recorder_builder.h"
#include "traces/formats/pickle_reader.h"

namespace ddx::formats {
namespace {

using Trouble = FlightRecorderBuilder::Trouble;
using Kind = PickleValue::Kind;

// Characters that are read as quickly as an element is kept.
constexpr std::size_t kTextPerElement = 8;

// Equal content has equal ids in a pickle, so each name, size list or stack is looked into once a file.
class IdCache {
 public:
  // Calls make() the first time that `id` is asked for.
  template <class Make>
  std::uint32_t get(std::uint32_t id, Make make) {
    if (id >= known_.size()) known_.resize(id + std::size_t{1}, kUnseen);
    if (known_[id] == kUnseen) known_[id] = make();
    return static_cast<std::uint32_t>(known_[id]);
  }

 private:
  static constexpr std::uint64_t kUnseen = UINT64_MAX;
  std::vector<std::uint64_t> known_;
};

class PickleDump {
 public:
  PickleDump(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source),
        builder_(source, options, out),
        reader_(source.path, source.bytes, "entries", [this](auto pairs) { entry(pairs); }) {}

  void read();

 private:
  void entry(PickleReader::Pairs pairs);
  void field(RecorderEntry& entry, RecorderField field, PickleValue value, std::string_view key);
  bool list_field(RecorderEntry& entry, RecorderField field, PickleValue list);
  RecorderHandle group(PickleValue list);
  RecorderHandle sizes(PickleValue list);
  RecorderHandle splits(PickleValue list);
  DataType first_type(PickleValue list);
  std::uint32_t call_site(PickleValue list);
  const Frame& frame(PickleValue dict);
  Frame frame_of(PickleReader::Pairs pairs);

  bool top(std::string_view key, PickleValue value);
  void config(PickleValue groups);
  void config_group(PickleValue key, PickleValue group);
  std::optional<std::vector<RankId>> members(PickleValue ranks);
  void status(PickleValue groups);

  RecorderScalar scalar(PickleValue value) const;
  void wrong(std::string_view key) { builder_.count(Trouble::wrong_type, key); }

  const Source& source_;
  FlightRecorderBuilder builder_;
  PickleReader reader_;
  IdCache fields_, names_, groups_, sizes_, splits_, types_, sites_, frame_numbers_;
  std::vector<Frame> frames_;
};

RecorderScalar PickleDump::scalar(PickleValue value) const {
  using To = RecorderScalar::Kind;
  switch (value.kind) {
    case Kind::none: return {To::none, 0, {}};
    case Kind::boolean: return {To::boolean, value.integer(), {}};
    case Kind::integer: return {To::integer, value.integer(), {}};
    case Kind::real: return {To::real, 0, {}};
    case Kind::text: return {To::text, 0, reader_.text(value)};
    default: return {To::other, 0, {}};
  }
}

RecorderHandle PickleDump::group(PickleValue list) {
  const auto pair = reader_.items(list);
  if (pair.size() != 2 || pair[0].kind != Kind::text || pair[1].kind != Kind::text) {
    wrong("process_group");
    return kNoHandle;
  }
  return builder_.group(reader_.text(pair[0]), reader_.text(pair[1]));
}

RecorderHandle PickleDump::sizes(PickleValue list) {
  FlightRecorderBuilder::Sizes tensors;
  for (const PickleValue& tensor : reader_.items(list)) {
    auto& dimensions = tensors.emplace_back();
    if (tensor.kind != Kind::list) return wrong("sizes"), kNoHandle;
    if (!builder_.afford(reader_.items(tensor).size())) return kNoHandle;
    for (const PickleValue& dimension : reader_.items(tensor)) {
      if (dimension.kind != Kind::integer) return wrong("sizes"), kNoHandle;
      dimensions.push_back(dimension.integer());
    }
  }
  return builder_.sizes(tensors);
}

RecorderHandle PickleDump::splits(PickleValue list) {
  std::vector<std::int64_t> elements;
  for (const PickleValue& count : reader_.items(list)) {
    if (count.kind != Kind::integer) return wrong("split sizes"), kNoHandle;
    elements.push_back(count.integer());
  }
  return builder_.splits(elements);
}

DataType PickleDump::first_type(PickleValue list) {
  const auto names = reader_.items(list);
  if (names.empty()) return DataType::unknown;
  if (names[0].kind != Kind::text) return wrong("dtypes"), DataType::unknown;
  return builder_.type(reader_.text(names[0]));
}

// Stacks share most of their frames.
const Frame& PickleDump::frame(PickleValue dict) {
  const std::uint32_t number = frame_numbers_.get(dict.id(), [&] {
    frames_.push_back(frame_of(reader_.items(dict)));
    return static_cast<std::uint32_t>(frames_.size() - 1);
  });
  return frames_[number];
}

Frame PickleDump::frame_of(PickleReader::Pairs pairs) {
  std::string_view function, file;
  std::int64_t line = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind != Kind::text) continue;
    const std::string_view key = reader_.text(pairs[i]);
    const PickleValue value = pairs[i + 1];
    if (key == "line" && value.kind == Kind::integer) line = value.integer();
    if (value.kind != Kind::text) continue;
    if (key == "name") function = reader_.text(value);
    if (key == "filename") file = reader_.text(value);
  }
  return builder_.frame(function, file, line);
}

std::uint32_t PickleDump::call_site(PickleValue list) {
  std::vector<Frame> frames;
  for (const PickleValue& each : reader_.items(list)) {
    if (each.kind != Kind::dict) wrong("frames");
    frames.push_back(each.kind == Kind::dict ? frame(each) : Frame());
  }
  const auto site = builder_.call_site(std::move(frames));
  return site ? site->value : kNoHandle;
}

bool PickleDump::list_field(RecorderEntry& entry, RecorderField field, PickleValue list) {
  const std::uint32_t id = list.id();
  entry.has_known_key = true;
  switch (field) {
    case RecorderField::process_group: entry.group = groups_.get(id, [&] { return group(list); }); return true;
    case RecorderField::input_sizes: entry.sizes_in = sizes_.get(id, [&] { return sizes(list); }); return true;
    case RecorderField::output_sizes: entry.sizes_out = sizes_.get(id, [&] { return sizes(list); }); return true;
    case RecorderField::input_splits: entry.splits_in = splits_.get(id, [&] { return splits(list); }); return true;
    case RecorderField::output_splits: entry.splits_out = splits_.get(id, [&] { return splits(list); }); return true;
    case RecorderField::input_types:
    case RecorderField::output_types: {
      const auto type =
          static_cast<DataType>(types_.get(id, [&] { return static_cast<std::uint32_t>(first_type(list)); }));
      (field == RecorderField::input_types ? entry.type_in : entry.type_out) = type;
      return true;
    }
    case RecorderField::frames:
      if (const std::uint32_t site = sites_.get(id, [&] { return call_site(list); }); site != kNoHandle) {
        entry.call_site = CallSiteId(site);
      }
      return true;
    default: return false;
  }
}

void PickleDump::field(RecorderEntry& entry, RecorderField field, PickleValue value, std::string_view key) {
  if (field == RecorderField::unknown) return builder_.count(Trouble::unknown_key, key);
  if (field == RecorderField::ignored) return;
  if (field == RecorderField::profiling_name && value.kind == Kind::text) {
    entry.has_known_key = true;
    entry.name = names_.get(value.id(), [&] { return builder_.op_name(reader_.text(value)); });
  } else if (value.kind == Kind::list) {
    if (!list_field(entry, field, value)) wrong(key);
  } else if (!builder_.assign(entry, field, scalar(value))) {
    wrong(key);
  }
}

void PickleDump::entry(PickleReader::Pairs pairs) {
  RecorderEntry made;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind != Kind::text) {
      wrong("a key of an entry");
      continue;
    }
    const std::string_view key = reader_.text(pairs[i]);
    const auto which = static_cast<RecorderField>(
        fields_.get(pairs[i].id(), [&] { return static_cast<std::uint32_t>(recorder_field(key)); }));
    field(made, which, pairs[i + 1], key);
  }
  builder_.add(made);
}

std::optional<std::vector<RankId>> PickleDump::members(PickleValue ranks) {
  if (ranks.kind == Kind::text) {
    const std::string_view text = reader_.text(ranks);
    if (!builder_.afford(text.size() / kTextPerElement)) return std::nullopt;
    auto parsed = parse_rank_list(text);
    if (!parsed) wrong("ranks");
    if (parsed && !builder_.afford(parsed->size())) return std::nullopt;
    return parsed;
  }
  if (ranks.kind != Kind::list) return wrong("ranks"), std::nullopt;
  if (!builder_.afford(reader_.items(ranks).size())) return std::nullopt;
  std::vector<RankId> made;
  for (const PickleValue& rank : reader_.items(ranks)) {
    if (rank.kind != Kind::integer || rank.integer() < 0 || rank.integer() > INT32_MAX) {
      return wrong("ranks"), std::nullopt;
    }
    made.emplace_back(rank.integer());
  }
  return made;
}

void PickleDump::config_group(PickleValue key, PickleValue group) {
  std::string_view name = key.kind == Kind::text ? reader_.text(key) : std::string_view();
  std::string_view description;
  std::optional<std::vector<RankId>> ranks;
  const auto pairs = reader_.items(group);
  if (!builder_.afford(pairs.size())) return builder_.add_group(name, description, std::nullopt);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string_view what = pairs[i].kind == Kind::text ? reader_.text(pairs[i]) : std::string_view();
    const PickleValue value = pairs[i + 1];
    const bool is_text = value.kind == Kind::text;
    if (what == "ranks") {
      ranks = members(value);
    } else if (what != "name" && what != "desc") {
      builder_.count(Trouble::unknown_key, what);
    } else if (!is_text) {
      wrong(what);
    } else {
      (what == "name" ? name : description) = reader_.text(value);
    }
  }
  builder_.add_group(name, description, std::move(ranks));
}

void PickleDump::config(PickleValue groups) {
  const auto pairs = reader_.items(groups);
  if (!builder_.afford(pairs.size())) return;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i + 1].kind == Kind::dict) {
      config_group(pairs[i], pairs[i + 1]);
    } else {
      wrong("pg_config");
    }
  }
}

void PickleDump::status(PickleValue groups) {
  const auto number = [&](PickleValue value) -> std::optional<std::int64_t> {
    if (value.kind == Kind::integer) return value.integer();
    if (value.kind != Kind::text) return std::nullopt;
    return parse_recorder_number(reader_.text(value));
  };
  const auto pairs = reader_.items(groups);
  if (!builder_.afford(pairs.size())) return;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto pg_id = number(pairs[i]);
    if (!pg_id || pairs[i + 1].kind != Kind::dict) {
      wrong("pg_status");
      continue;
    }
    const auto counters = reader_.items(pairs[i + 1]);
    if (!builder_.afford(counters.size())) return;
    for (std::size_t k = 0; k + 1 < counters.size(); k += 2) {
      const auto value = number(counters[k + 1]);
      const auto key = counters[k].kind == Kind::text ? reader_.text(counters[k]) : std::string_view("pg_status");
      if (!value) {
        wrong(key);
      } else if (!builder_.add_status(*pg_id, key, *value)) {
        builder_.count(Trouble::unknown_key, key);
      }
    }
  }
}

// True: a key that only a dump has.
bool PickleDump::top(std::string_view key, PickleValue value) {
  switch (recorder_section(key)) {
    case RecorderSection::version:
      value.kind == Kind::text ? builder_.version(reader_.text(value)) : wrong(key);
      return false;
    case RecorderSection::library_version:
      value.kind == Kind::text ? builder_.library_version(reader_.text(value)) : wrong(key);
      return false;
    case RecorderSection::config: value.kind == Kind::dict ? config(value) : wrong(key); return true;
    case RecorderSection::status: value.kind == Kind::dict ? status(value) : wrong(key); return true;
    case RecorderSection::entries:
      if (value.kind != Kind::list && value.kind != Kind::other) wrong(key);
      return true;
    case RecorderSection::ignored: return false;
    case RecorderSection::unknown: builder_.count(Trouble::unknown_key, key); return false;
  }
  return false;
}

void PickleDump::read() {
  reader_.run();
  bool known = builder_.usable();
  const auto pairs = reader_.top();
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind == Kind::text) known = top(reader_.text(pairs[i]), pairs[i + 1]) || known;
  }
  for (std::uint64_t i = 0; i < reader_.items_rejected(); ++i) wrong("entries");
  if (!reader_.whole()) {
    if (!builder_.usable()) {
      throw Error(source_.path, Place{.offset = reader_.offset(), .line = {}},
                  fmt::format("nothing of this flight-recorder dump can be used: {}", reader_.problem()));
    }
    builder_.cut(reader_.offset(), reader_.problem());
  } else if (!known) {
    throw Error(source_.path, Place{.offset = 0, .line = {}},
                "a pickle, but no flight-recorder dump: no pg_config, no entries");
  }
  if (reader_.whole() && reader_.trailing() > 0) builder_.trailing(reader_.trailing());
  builder_.finish();
}

Sniff sniff(const std::string&, std::string_view head) {
  if (head.size() < 2 || head[0] != '\x80' || head[1] < 2 || head[1] > 5) return Sniff::no;
  for (std::string_view key : {"pg_config", "pg_status", "entries", "comm_lib_version", "nccl_version"}) {
    if (head.find(key) != std::string_view::npos) return Sniff::sure;
  }
  return head.find("version") != std::string_view::npos ? Sniff::likely : Sniff::maybe;
}

void read(const Source& source, const ImportOptions& options, Evidence& out) {
  PickleDump(source, options, out).read();
}

}  // namespace

Importer flight_recorder_pickle_importer() {
  return {"flight-recorder-pickle", "PyTorch flight-recorder dump, as PyTorch writes it (pickle)", sniff, read};
}

}  // namespace ddx::formats
