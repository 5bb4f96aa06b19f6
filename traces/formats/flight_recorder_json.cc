#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "traces/formats/flight_recorder.h"
#include "traces/formats/flight_recorder_builder.h"

namespace ddx::formats {
namespace {

using Trouble = FlightRecorderBuilder::Trouble;
using Scalar = RecorderScalar;

// Where in the dump the parser is: one for each open object or list.
enum class Where : std::uint8_t {
  skipped,  // in something that ddx does not look into
  top,
  config,
  config_group,
  config_ranks,
  status,
  status_group,
  entries,
  entry,
  entry_list,   // process_group, sizes, dtypes, splits, frames
  entry_sizes,  // the sizes of one tensor
  frame,
};

// Python's json writes NaN, Infinity and -Infinity, which are no JSON. `text` with null in their places, and where in
// it that made it one byte longer.
struct Mended {
  std::string text;
  std::vector<std::size_t> longer_at;
};

Mended with_nulls(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kWords{"NaN", "Infinity", "-Infinity"};
  constexpr std::string_view kNull = "null";
  Mended mended;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && at + 1 < text.size()) mended.text += text[at++];
    const auto word = quoted || (c != 'N' && c != 'I' && c != '-')
                          ? kWords.end()
                          : std::find_if(kWords.begin(), kWords.end(),
                                         [&](std::string_view each) { return text.substr(at).starts_with(each); });
    if (word == kWords.end()) {
      mended.text += text[at];
      continue;
    }
    mended.text += kNull;
    if (word->size() > kNull.size()) mended.text.append(word->size() - kNull.size(), ' ');
    if (word->size() < kNull.size()) mended.longer_at.push_back(mended.text.size());
    at += word->size() - 1;
  }
  return mended;
}

// nlohmann's SAX interface: no tree is built, an entry goes to the builder when its object closes.
class JsonDump {
 public:
  JsonDump(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source), builder_(source, options, out) {}

  void read();

  bool null() { return value({}); }
  bool boolean(bool flag) { return value({Scalar::Kind::boolean, flag ? 1 : 0, {}}); }
  bool number_integer(std::int64_t number) { return value({Scalar::Kind::integer, number, {}}); }
  bool number_unsigned(std::uint64_t number) {
    if (number > INT64_MAX) return value({Scalar::Kind::other, 0, {}});
    return number_integer(static_cast<std::int64_t>(number));
  }
  bool number_float(double, const std::string&) { return value({Scalar::Kind::real, 0, {}}); }
  bool string(std::string& text) { return value({Scalar::Kind::text, 0, text}); }
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool key(std::string& text);
  bool start_object(std::size_t) { return open(object_below()); }
  bool start_array(std::size_t) { return open(list_below()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string& last, const nlohmann::json::exception& error);

 private:
  bool parse();
  Where object_below();
  Where list_below();
  bool open(Where where);
  bool close();
  bool value(const Scalar& scalar);
  void top_value(const Scalar& scalar);
  void group_value(const Scalar& scalar);
  void status_value(const Scalar& scalar);
  void list_value(const Scalar& scalar);
  void frame_value(const Scalar& scalar);
  void finish_list();
  void wrong(std::string_view what) { builder_.count(Trouble::wrong_type, what); }

  const Source& source_;
  FlightRecorderBuilder builder_;
  std::vector<Where> path_;
  bool closed_ = false;          // the outermost object ended
  bool known_ = false;           // a key that only a dump has was seen
  std::uint64_t broken_at_ = 0;  // offset of the first byte that makes no sense

  std::string key_;  // of the innermost object
  RecorderSection section_ = RecorderSection::unknown;
  RecorderField field_ = RecorderField::unknown;
  RecorderEntry entry_;

  // The list of an entry that is being read; its strings in one buffer, as (begin, length).
  bool list_ok_ = true;
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> texts_;
  std::vector<std::int64_t> numbers_;
  FlightRecorderBuilder::Sizes sizes_;
  std::size_t size_count_ = 0;  // used rows of sizes_, which keep their memory
  struct Frame {
    std::pair<std::size_t, std::size_t> function, file;
    std::int64_t line = 0;
  };
  std::vector<Frame> frames_;

  std::string group_name_, group_description_;
  std::optional<std::vector<RankId>> group_ranks_;
  std::optional<std::int64_t> status_id_;

  std::pair<std::size_t, std::size_t> keep(std::string_view text) {
    text_ += text;
    return {text_.size() - text.size(), text.size()};
  }
  std::string_view kept(std::pair<std::size_t, std::size_t> at) const {
    return std::string_view(text_).substr(at.first, at.second);
  }
};

Where JsonDump::object_below() {
  if (path_.empty()) return Where::top;
  switch (path_.back()) {
    case Where::top:
      if (section_ == RecorderSection::config) return Where::config;
      if (section_ == RecorderSection::status) return Where::status;
      if (section_ == RecorderSection::entries) wrong("entries");
      return Where::skipped;
    case Where::config:
      group_name_ = key_;
      group_description_.clear();
      group_ranks_.reset();
      return Where::config_group;
    case Where::status:
      status_id_ = parse_recorder_number(key_);
      if (!status_id_) wrong("pg_status");
      return status_id_ ? Where::status_group : Where::skipped;
    case Where::entries: entry_ = {}; return Where::entry;
    case Where::entry:
      if (field_ == RecorderField::unknown) return Where::skipped;
      if (field_ != RecorderField::ignored) wrong(key_);
      return Where::skipped;
    case Where::entry_list:
      if (field_ == RecorderField::frames) {
        frames_.emplace_back();
        return Where::frame;
      }
      list_ok_ = false;
      return Where::skipped;
    case Where::skipped: return Where::skipped;
    default: wrong(key_); return Where::skipped;
  }
}

Where JsonDump::list_below() {
  if (path_.empty()) return Where::skipped;
  switch (path_.back()) {
    case Where::top:
      if (section_ == RecorderSection::entries) return Where::entries;
      if (section_ != RecorderSection::unknown && section_ != RecorderSection::ignored) wrong(key_);
      return Where::skipped;
    case Where::config_group:
      if (key_ != "ranks") return Where::skipped;
      group_ranks_.emplace();
      return Where::config_ranks;
    case Where::entry:
      if (field_ == RecorderField::unknown || field_ == RecorderField::ignored) return Where::skipped;
      list_ok_ = true;
      text_.clear();
      texts_.clear();
      numbers_.clear();
      frames_.clear();
      size_count_ = 0;
      return Where::entry_list;
    case Where::entry_list:
      if (field_ != RecorderField::input_sizes && field_ != RecorderField::output_sizes) {
        list_ok_ = false;
        return Where::skipped;
      }
      if (size_count_ == sizes_.size()) sizes_.emplace_back();
      sizes_[size_count_++].clear();
      return Where::entry_sizes;
    case Where::entry_sizes: list_ok_ = false; return Where::skipped;
    case Where::skipped: return Where::skipped;
    default: wrong(key_); return Where::skipped;
  }
}

bool JsonDump::open(Where where) {
  path_.push_back(where);
  return true;
}

bool JsonDump::close() {
  const Where where = path_.back();
  path_.pop_back();
  switch (where) {
    case Where::top: closed_ = true; break;
    case Where::config_group:
      builder_.add_group(group_name_, group_description_, std::move(group_ranks_));
      group_ranks_.reset();
      break;
    case Where::entry: builder_.add(entry_); break;
    case Where::entry_list: finish_list(); break;
    default: break;
  }
  return true;
}

bool JsonDump::key(std::string& text) {
  switch (path_.back()) {
    case Where::top:
      section_ = recorder_section(text);
      if (section_ == RecorderSection::unknown) builder_.count(Trouble::unknown_key, text);
      known_ = known_ || section_ == RecorderSection::config || section_ == RecorderSection::status ||
               section_ == RecorderSection::entries;
      break;
    case Where::entry:
      field_ = recorder_field(text);
      if (field_ == RecorderField::unknown) builder_.count(Trouble::unknown_key, text);
      break;
    case Where::skipped: return true;
    default: break;
  }
  key_.swap(text);
  return true;
}

bool JsonDump::value(const Scalar& scalar) {
  if (path_.empty()) return true;
  switch (path_.back()) {
    case Where::top: top_value(scalar); break;
    case Where::config_group: group_value(scalar); break;
    case Where::config_ranks:
      if (scalar.kind == Scalar::Kind::integer && scalar.integer >= 0 && scalar.integer <= INT32_MAX) {
        if (group_ranks_) group_ranks_->emplace_back(scalar.integer);
      } else if (group_ranks_) {
        wrong("ranks");
        group_ranks_.reset();
      }
      break;
    case Where::status_group: status_value(scalar); break;
    case Where::entry:
      if (!builder_.assign(entry_, field_, scalar)) wrong(key_);
      break;
    case Where::entry_list: list_value(scalar); break;
    case Where::entry_sizes:
      if (scalar.kind != Scalar::Kind::integer) list_ok_ = false;
      sizes_[size_count_ - 1].push_back(scalar.integer);
      break;
    case Where::frame: frame_value(scalar); break;
    case Where::config: wrong("pg_config"); break;
    case Where::status: wrong("pg_status"); break;
    case Where::entries: wrong("entries"); break;
    case Where::skipped: break;
  }
  return true;
}

void JsonDump::top_value(const Scalar& scalar) {
  const bool is_text = scalar.kind == Scalar::Kind::text;
  switch (section_) {
    case RecorderSection::version: is_text ? builder_.version(scalar.text) : wrong(key_); break;
    case RecorderSection::library_version: is_text ? builder_.library_version(scalar.text) : wrong(key_); break;
    case RecorderSection::unknown:
    case RecorderSection::ignored: break;
    default:
      if (scalar.kind != Scalar::Kind::none) wrong(key_);
  }
}

void JsonDump::group_value(const Scalar& scalar) {
  const bool is_text = scalar.kind == Scalar::Kind::text;
  if (key_ == "ranks") {
    if (is_text) group_ranks_ = parse_rank_list(scalar.text);
    if (!group_ranks_) wrong(key_);
  } else if (key_ != "name" && key_ != "desc") {
    builder_.count(Trouble::unknown_key, key_);
  } else if (!is_text) {
    wrong(key_);
  } else {
    (key_ == "name" ? group_name_ : group_description_) = scalar.text;
  }
}

void JsonDump::status_value(const Scalar& scalar) {
  std::optional<std::int64_t> number;
  if (scalar.kind == Scalar::Kind::integer) number = scalar.integer;
  if (scalar.kind == Scalar::Kind::text) number = parse_recorder_number(scalar.text);
  if (!number) {
    wrong(key_);
  } else if (!builder_.add_status(*status_id_, key_, *number)) {
    builder_.count(Trouble::unknown_key, key_);
  }
}

void JsonDump::list_value(const Scalar& scalar) {
  switch (field_) {
    case RecorderField::process_group:
    case RecorderField::input_types:
    case RecorderField::output_types:
      if (scalar.kind != Scalar::Kind::text) list_ok_ = false;
      texts_.push_back(keep(scalar.text));
      break;
    case RecorderField::input_splits:
    case RecorderField::output_splits:
      if (scalar.kind != Scalar::Kind::integer) list_ok_ = false;
      numbers_.push_back(scalar.integer);
      break;
    default: list_ok_ = false;
  }
}

void JsonDump::frame_value(const Scalar& scalar) {
  Frame& frame = frames_.back();
  if (key_ == "line" && scalar.kind == Scalar::Kind::integer) frame.line = scalar.integer;
  if (scalar.kind != Scalar::Kind::text) return;
  if (key_ == "name") frame.function = keep(scalar.text);
  if (key_ == "filename") frame.file = keep(scalar.text);
}

void JsonDump::finish_list() {
  entry_.has_known_key = true;
  if (field_ == RecorderField::process_group && texts_.size() != 2) list_ok_ = false;
  if (!list_ok_) return wrong(key_);
  switch (field_) {
    case RecorderField::process_group: entry_.group = builder_.group(kept(texts_[0]), kept(texts_[1])); break;
    case RecorderField::input_types:
    case RecorderField::output_types:
      if (!texts_.empty()) {
        (field_ == RecorderField::input_types ? entry_.type_in : entry_.type_out) = builder_.type(kept(texts_[0]));
      }
      break;
    case RecorderField::input_splits: entry_.splits_in = builder_.splits(numbers_); break;
    case RecorderField::output_splits: entry_.splits_out = builder_.splits(numbers_); break;
    case RecorderField::input_sizes:
    case RecorderField::output_sizes: {
      const auto handle = builder_.sizes(std::span(sizes_.data(), size_count_));
      (field_ == RecorderField::input_sizes ? entry_.sizes_in : entry_.sizes_out) = handle;
      break;
    }
    case RecorderField::frames: {
      std::vector<ddx::Frame> frames;
      for (const Frame& frame : frames_) {
        frames.push_back(builder_.frame(kept(frame.function), kept(frame.file), frame.line));
      }
      entry_.call_site = builder_.call_site(std::move(frames));
      break;
    }
    default: wrong(key_);
  }
}

// `position` counts the bytes up to the bad one, which it takes in; one more than there are where the text ends.
bool JsonDump::parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
  broken_at_ = position == 0 ? 0 : position - 1;
  return false;
}

bool JsonDump::parse() {
  const std::string_view bytes = source_.bytes;
  const auto parse_all = [this](std::string_view text) {
    return nlohmann::json::sax_parse(text.data(), text.data() + text.size(), this);
  };
  bool whole = false;
  if (bytes.find("NaN") == std::string_view::npos && bytes.find("Infinity") == std::string_view::npos) {
    whole = parse_all(bytes);
  } else {
    const Mended mended = with_nulls(bytes);
    whole = parse_all(mended.text);
    const auto longer = std::upper_bound(mended.longer_at.begin(), mended.longer_at.end(), broken_at_);
    broken_at_ -= static_cast<std::uint64_t>(longer - mended.longer_at.begin());
  }
  broken_at_ = std::min<std::uint64_t>(broken_at_, bytes.size());
  return whole;
}

void JsonDump::read() {
  const bool whole = parse();
  const char* broken = broken_at_ >= source_.bytes.size() ? "the file ends inside" : "no valid JSON there";
  if (!whole && !closed_) {
    if (!builder_.usable()) {
      throw Error(source_.path, Place{.offset = broken_at_, .line = {}},
                  fmt::format("nothing of this flight-recorder dump can be used: {}", broken));
    }
    builder_.cut(broken_at_, broken);
  } else if (!known_) {
    throw Error(source_.path, Place{.offset = 0, .line = {}},
                "JSON, but no flight-recorder dump: no pg_config, no entries");
  }
  if (!whole && closed_) {
    // The parser names the end of the word that it did not expect.
    const std::size_t end = source_.bytes.substr(0, broken_at_).rfind('}');
    builder_.trailing(source_.bytes.size() - (end == std::string_view::npos ? broken_at_ : end + 1));
  }
  builder_.finish();
}

Sniff sniff(const std::string&, std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '{') return Sniff::no;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  const bool section = has("\"pg_config\"") || has("\"pg_status\"") || has("\"entries\"");
  if (!section) return Sniff::no;
  const bool sure = has("\"record_id\"") || has("\"nccl_version\"") || has("\"comm_lib_version\"") ||
                    has("\"collective_seq_id\"") || (has("\"pg_config\"") && has("\"pg_status\""));
  return sure ? Sniff::sure : Sniff::likely;
}

void read(const Source& source, const ImportOptions& options, Evidence& out) { JsonDump(source, options, out).read(); }

}  // namespace

Importer flight_recorder_json_importer() {
  return {"flight-recorder-json", "PyTorch flight-recorder dump as JSON", sniff, read};
}

}  // namespace ddx::formats
