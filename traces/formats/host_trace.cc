// PyTorch's host execution traces (ExecutionTraceObserver, "schema": "1.1.0-chakra.0.0.4"): nodes in JSON, of which the
// records of collectives (record_param_comms) are read. Times are not in them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "traces/formats/chakra_nodes.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/kineto_events.h"
#include "traces/formats/lenient_json.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

enum class Where : std::uint8_t { skipped, top, nodes, node, inputs, attributes, attribute };

// nlohmann's SAX interface: no tree is built.
class Nodes {
 public:
  explicit Nodes(std::uint64_t max_nodes) : max_nodes_(max_nodes) {}
  KinetoProfile profile;
  GroupNotes notes;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t number) {
    if (at() == Where::attribute && key_ == "value") number_ = number;
    return true;
  }
  bool number_unsigned(std::uint64_t number) {
    return number > INT64_MAX || number_integer(static_cast<std::int64_t>(number));
  }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string& text);
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool key(std::string& text) {
    key_.swap(text);
    return true;
  }
  bool start_object(std::size_t) { return open(object_below()); }
  bool start_array(std::size_t) { return open(list_below()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    profile.broken_at = position;
    return false;
  }

 private:
  Where at() const { return path_.empty() ? Where::skipped : path_.back(); }
  bool open(Where where) {
    path_.push_back(where);
    return true;
  }
  Where object_below();
  Where list_below();
  bool close();
  void finish_attribute();
  void finish_node();

  std::uint64_t max_nodes_;
  std::vector<Where> path_;
  std::string key_;
  std::string name_, note_;  // of the node; what its inputs say of groups
  std::string attribute_, text_;
  std::optional<std::int64_t> number_;
  KinetoCall call_;
};

Where Nodes::object_below() {
  if (path_.empty()) return Where::top;
  switch (at()) {
    case Where::nodes:
      name_.clear();
      note_.clear();
      call_ = {};
      return Where::node;
    case Where::node: return key_ == "inputs" ? Where::inputs : Where::skipped;
    case Where::attributes:
      attribute_.clear();
      text_.clear();
      number_.reset();
      return Where::attribute;
    default: return Where::skipped;
  }
}

Where Nodes::list_below() {
  if (at() == Where::top && key_ == "nodes") return Where::nodes;
  if (at() == Where::node && key_ == "attrs") return Where::attributes;
  if (at() == Where::inputs && key_ == "values") return Where::inputs;
  return Where::skipped;
}

bool Nodes::string(std::string& text) {
  if (at() == Where::node && key_ == "name") name_.swap(text);
  if (at() == Where::inputs && contains(text, "pg_name")) note_.swap(text);
  if (at() == Where::attribute && key_ == "name") attribute_.swap(text);
  if (at() == Where::attribute && key_ == "value") text_.swap(text);
  return true;
}

bool Nodes::close() {
  const Where where = at();
  if (!path_.empty()) path_.pop_back();
  if (where == Where::attribute) finish_attribute();
  if (where == Where::node) finish_node();
  return true;
}

void Nodes::finish_attribute() {
  if (!number_) number_ = parse_recorder_number(text_);
  if (attribute_ == "collective_name") call_.name.swap(text_);
  if (attribute_ == "dtype") call_.type.swap(text_);
  if (attribute_ == "pg_name") call_.group.swap(text_);
  if (attribute_ == "pg_desc") call_.description.swap(text_);
  if (attribute_ == "in_split_size") call_.splits_in.swap(text_);
  if (attribute_ == "out_split_size") call_.splits_out.swap(text_);
  const bool is_size = attribute_ == "in_msg_nelems" || attribute_ == "out_msg_nelems";
  if (is_size && number_.value_or(-1) < 0) {
    call_.bad_number = attribute_ + (number_ ? fmt::format(" {}", *number_) : " beyond 64 bits, or none");
  }
  if (attribute_ == "in_msg_nelems") call_.count_in = number_;
  if (attribute_ == "out_msg_nelems") call_.count_out = number_;
  if (attribute_ == "pg_size") call_.size = number_;
  if (attribute_ == "src_rank") call_.source = number_;
  if (attribute_ == "dst_rank") call_.destination = number_;
}

void Nodes::finish_node() {
  ++profile.events;
  if (!note_.empty()) notes.read(note_);
  if (name_ != "record_param_comms") return;
  if (profile.records.size() >= max_nodes_) {
    ++profile.left_out;
    return;
  }
  profile.records.push_back({std::move(call_), std::nullopt, std::nullopt});
}

KinetoProfile parse(std::string_view text, std::uint64_t max_nodes) {
  Nodes nodes(max_nodes);
  nlohmann::json::sax_parse(text.begin(), text.end(), &nodes);
  for (const KinetoRecord& record : nodes.profile.records) {
    const std::string name = printable(record.call.group, 255);
    const std::vector<RankId>* members = nodes.notes.members(name);
    if (members != nullptr) nodes.profile.groups.try_emplace(name, KinetoGroup{{}, *members, std::nullopt});
  }
  return std::move(nodes.profile);
}

}  // namespace

KinetoProfile read_host_trace(std::string_view text, std::uint64_t max_nodes) {
  KinetoProfile profile = parse(text, max_nodes);
  if (!profile.broken_at) return profile;
  const MendedJson mended = mend_json(text);
  if (mended.mends == 0) return profile;
  KinetoProfile again = parse(mended.text, max_nodes);
  again.mends = mended.mends;
  return again;
}

}  // namespace ddx::formats
