#include "traces/formats/chakra_nodes.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/protobuf_wire.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostGroups = 65'534;

struct Attribute {
  std::string_view name;
  std::optional<std::int64_t> number;  // of any integer kind, a flag, or a real that is whole
  std::string_view text;
};

std::optional<std::int64_t> whole(double value) {
  if (!(std::abs(value) < 9e15) || std::floor(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// The oneof of AttributeProto by field number.
void read_value(const WireField& field, Attribute& attribute) {
  const std::uint64_t v = field.value;
  switch (field.number) {
    case 1: attribute.name = field.bytes; break;
    case 3: attribute.number = whole(std::bit_cast<double>(v)); break;
    case 5: attribute.number = whole(std::bit_cast<float>(static_cast<std::uint32_t>(v))); break;
    case 7: attribute.number = static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); break;  // int32
    case 9: attribute.number = static_cast<std::int64_t>(v); break;                              // int64
    case 11:                                                                                     // uint32
    case 13:                                                                                     // uint64
    case 21:                                                                                     // fixed64
      if (v <= INT64_MAX) attribute.number = static_cast<std::int64_t>(v);
      break;
    case 15:                                                                                      // sint32
    case 17: attribute.number = zigzag(v); break;                                                 // sint64
    case 19: attribute.number = static_cast<std::int64_t>(v); break;                              // fixed32
    case 23: attribute.number = static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); break;  // sfixed32
    case 25: attribute.number = static_cast<std::int64_t>(v); break;                              // sfixed64
    case 27: attribute.number = v != 0 ? 1 : 0; break;                                            // bool
    case 29:                                                                                      // string
    case 31: attribute.text = field.bytes; break;                                                 // bytes
    default: break;
  }
}

bool read_attribute(std::string_view bytes, Attribute& attribute) {
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) return false;
    read_value(*field, attribute);
  }
  return true;
}

void assign(const Attribute& attribute, ChakraNode& node) {
  const std::string_view name = attribute.name;
  if (name == "is_cpu_op" && attribute.number) node.on_cpu = *attribute.number != 0;
  if (name == "comm_type") node.comm_type = attribute.number;
  if (name == "comm_size") node.comm_size = attribute.number;
  if (name == "comm_src") node.source = attribute.number;
  if (name == "comm_dst") node.destination = attribute.number;
  if (name == "comm_tag") node.tag = attribute.number;
  if (name == "root" || name == "root_rank" || name == "comm_root") node.root = attribute.number;
  if (name == "num_ops") node.operations = attribute.number;
  if (name == "tensor_size") node.tensor_bytes = attribute.number;
  if (name == "tid") node.thread = attribute.number;
  if (name == "stream") node.stream = attribute.number;
  if (name == "pg_name") node.group = attribute.text;
}

// One number, or several packed into one field.
bool read_deps(const WireField& field, std::vector<std::uint64_t>& deps) {
  if (field.type == WireType::varint) {
    deps.push_back(field.value);
    return true;
  }
  WireReader reader(field.bytes);
  while (!reader.at_end()) {
    const auto id = reader.varint();
    if (!id) return false;
    deps.push_back(*id);
  }
  return true;
}

// What the inputs (IOInfo) of a metadata node hold as values.
std::string_view values_of(std::string_view bytes) {
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) break;
    if (field->number == 1) return field->bytes;
  }
  return {};
}

bool read_node(std::string_view bytes, ChakraTrace& out) {
  ChakraNode node;
  node.first_dep = static_cast<std::uint32_t>(out.deps.size());
  std::string_view inputs;
  std::vector<std::uint64_t> control;
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field) return false;
    switch (field->number) {
      case 1: node.id = field->value; break;
      case 2: node.name = field->bytes; break;
      case 3: node.type = field->value; break;
      case 4:
        if (!read_deps(*field, control)) return false;
        break;
      case 5:
        if (!read_deps(*field, out.deps)) return false;
        break;
      case 6: node.start_micros = field->value; break;
      case 7: node.duration_micros = field->value; break;
      case 8: inputs = field->bytes; break;
      case 10: {
        Attribute attribute;
        if (!read_attribute(field->bytes, attribute)) return false;
        assign(attribute, node);
        break;
      }
      default: break;
    }
  }
  node.dep_count = static_cast<std::uint32_t>(out.deps.size()) - node.first_dep;
  node.control_count = static_cast<std::uint32_t>(control.size());
  out.deps.insert(out.deps.end(), control.begin(), control.end());
  if (node.type == ChakraType::kMetadata) out.groups.read(values_of(inputs));
  out.nodes.push_back(node);
  return true;
}

// GlobalMetadata: a version, and attributes.
bool read_metadata(std::string_view bytes, std::string_view& version) {
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field || field->type != WireType::bytes || field->number > 2) return false;
    if (field->number == 1) version = field->bytes;
    Attribute attribute;
    if (field->number == 2 && (!read_attribute(field->bytes, attribute) || attribute.name.empty())) return false;
  }
  return true;
}

// Fields with the types that the schema gives them, a name or a type among them.
bool looks_like_node(std::string_view bytes) {
  WireReader reader(bytes);
  bool told = false;
  while (!reader.at_end()) {
    const auto field = reader.field();
    if (!field || field->number > 16) return false;
    const bool is_number = field->number == 1 || field->number == 3 || field->number == 6 || field->number == 7;
    const bool is_bytes = field->number == 2 || (field->number >= 8 && field->number <= 11);
    if (is_number && field->type != WireType::varint) return false;
    if (is_bytes && field->type != WireType::bytes) return false;
    told = told || field->number == 2 || field->number == 3;
  }
  return told;
}

// The text behind `key`, quoted in any way; empty where there is none before `end`.
std::string_view note_text(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  const std::size_t begin = text.find_first_not_of("\\\"': ");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find_first_of("\\\"',}]"));
}

std::vector<RankId> note_ranks(std::string_view text) {
  const std::size_t at = text.find("ranks");
  const std::size_t open = at == std::string_view::npos ? at : text.find('[', at);
  const std::size_t close = open == std::string_view::npos ? open : text.find(']', open);
  if (close != std::string_view::npos) {
    auto ranks = parse_rank_list(text.substr(open, close - open + 1));
    if (ranks && !ranks->empty()) return std::move(*ranks);
  }
  // PyTorch leaves the list of the default group out.
  const auto size = number_at(note_text(text, "group_size"));
  if (!size || *size <= 0 || *size > std::int64_t{kMaxRanks} || at == std::string_view::npos) return {};
  const bool listed = open != std::string_view::npos && close > open + 1;
  std::vector<RankId> ranks;
  for (std::int64_t rank = 0; !listed && rank < *size; ++rank) ranks.emplace_back(rank);
  return ranks;
}

}  // namespace

void GroupNotes::read(std::string_view text) {
  for (std::size_t at = text.find("pg_name"); at != std::string_view::npos;) {
    const std::size_t next = text.find("pg_name", at + 7);
    const std::string_view note = text.substr(at, next == std::string_view::npos ? next : next - at);
    const std::string name = printable(note_text(note, "pg_name"), 255);
    if (!name.empty() && groups_.size() < kMostGroups && listed_ <= kMaxRanks && !groups_.contains(name)) {
      std::vector<RankId> ranks = note_ranks(note);
      listed_ += ranks.size();
      if (!ranks.empty()) groups_.emplace(name, std::move(ranks));
    }
    at = next;
  }
}

const std::vector<RankId>* GroupNotes::members(std::string_view name) const {
  const auto at = groups_.find(name);
  return at == groups_.end() ? nullptr : &at->second;
}

bool may_be_chakra(std::string_view head) {
  WireReader reader(head);
  std::string_view version;
  const auto metadata = reader.block();
  if (!metadata || metadata->empty() || !read_metadata(*metadata, version)) return false;
  if (reader.at_end()) return true;
  const auto node = reader.block();
  return node ? looks_like_node(*node) : head.size() >= 32 * 1024;
}

ChakraTrace read_chakra_nodes(const std::string& path, std::string_view bytes, std::uint64_t max_nodes) {
  ChakraTrace trace;
  WireReader reader(bytes);
  const auto metadata = reader.block();
  if (!metadata || !read_metadata(*metadata, trace.version)) {
    throw Error(path, {0, std::nullopt}, "expected the metadata of a Chakra execution trace");
  }
  while (!reader.at_end()) {
    const std::size_t at = reader.offset();
    const auto message = reader.block();
    if (message && trace.nodes.size() >= max_nodes) {
      ++trace.left_out;
      continue;
    }
    const std::size_t deps = trace.deps.size();
    if (!message || message->empty() || !read_node(*message, trace)) {
      trace.deps.resize(deps);
      trace.cut_at = at;
      break;
    }
  }
  if (trace.nodes.empty()) {
    throw Error(path, {reader.offset(), std::nullopt}, "expected a node of a Chakra execution trace");
  }
  return trace;
}

}  // namespace ddx::formats
