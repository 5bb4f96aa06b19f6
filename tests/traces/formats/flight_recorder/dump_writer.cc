#include "tests/traces/formats/flight_recorder/dump_writer.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace ddx::testing {
namespace {

class Pickler {
 public:
  Pickler(bool torch, int protocol) : torch_(torch), protocol_(protocol) {}

  std::string pickle(const Value& value) {
    out_ = {'\x80', static_cast<char>(protocol_)};
    if (protocol_ >= 4) little(0x95, 0, 8);  // readers take no notice of the length
    write(value);
    return out_ + '.';
  }

 private:
  void op(int code) { out_ += static_cast<char>(code); }
  void little(int code, std::uint64_t value, int size) {
    op(code);
    for (int i = 0; i < size; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  void put() {
    if (protocol_ >= 4) {
      op(0x94);
    } else {
      next_ < 256 ? little('q', next_, 1) : little('r', next_, 4);
    }
    ++next_;
  }
  void get(std::uint64_t key) { key < 256 ? little('h', key, 1) : little('j', key, 4); }

  void write(const Value& value) {
    std::visit([this](const auto& held) { write_held(held); }, value.held);
  }
  void write_held(const Value::None&) { op('N'); }
  void write_held(bool value) { op(value ? 0x88 : 0x89); }
  void write_held(double value) {
    op('G');
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 7; i >= 0; --i) out_ += static_cast<char>(bits >> (8 * i));
  }
  void write_held(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (value >= 0 && value < 256) return little('K', bits, 1);
    if (value >= 0 && value < 65536) return little('M', bits, 2);
    if (value == static_cast<std::int32_t>(value)) return little('J', bits, 4);
    little(0x8a, 8, 1);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(bits >> (8 * i));
  }
  void write_held(const std::string& text) {
    const auto [at, added] = texts_.try_emplace(text, next_);
    if (!added) return get(at->second);
    protocol_ >= 4 && text.size() < 256 ? little(0x8c, text.size(), 1) : little('X', text.size(), 4);
    out_ += text;
    put();
  }
  bool begin(const void* container, int code) {
    if (const auto at = containers_.find(container); at != containers_.end()) {
      get(at->second);
      return false;
    }
    op(code);
    if (!torch_) {
      containers_[container] = next_;
      put();
    }
    return true;
  }
  // Python's pickler writes at most 1,000 items between MARK and the opcode, and a single one without MARK.
  template <class Items, class Write>
  void batches(const Items& items, int one, int many, Write write_item) {
    std::size_t at = 0;
    do {
      const std::size_t size = torch_ ? items.size() : std::min<std::size_t>(1000, items.size() - at);
      if (!torch_ && size == 0) return;
      const bool single = !torch_ && size == 1;
      if (!single) op('(');
      for (std::size_t i = 0; i < size; ++i) write_item(items[at + i]);
      op(single ? one : many);
      at += size;
    } while (at < items.size());
  }
  void write_held(const std::shared_ptr<List>& list) {
    if (!begin(list.get(), ']')) return;
    batches(*list, 'a', 'e', [this](const Value& item) { write(item); });
  }
  void write_held(const std::shared_ptr<Dict>& dict) {
    if (!begin(dict.get(), '}')) return;
    batches(*dict, 's', 'u', [this](const auto& pair) {
      write_held(pair.first);
      write(pair.second);
    });
    if (torch_ && dict.use_count() > 1) {
      containers_[dict.get()] = next_;
      put();
    }
  }
  void write_held(const Value::Tuple& tuple) {
    for (const Value& item : *tuple.items) write(item);
    op(0x84 + static_cast<int>(tuple.items->size()));  // TUPLE1 to TUPLE3
    if (!torch_) put();
  }

  bool torch_;
  int protocol_;
  std::string out_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::unordered_map<const void*, std::uint64_t> containers_;
};

std::string json_held(const Value::None&) { return "null"; }
std::string json_held(bool value) { return value ? "true" : "false"; }
std::string json_held(std::int64_t value) { return fmt::format("{}", value); }
std::string json_held(double value) { return fmt::format("{}", value); }
std::string json_held(const std::string& text) { return '"' + text + '"'; }
std::string json_held(const std::shared_ptr<List>& list) {
  std::string text;
  for (const Value& item : *list) text += (text.empty() ? "[" : ",") + json(item);
  return text.empty() ? "[]" : text + "]";
}
std::string json_held(const Value::Tuple& tuple) { return json_held(tuple.items); }
std::string json_held(const std::shared_ptr<Dict>& dict) {
  std::string text;
  for (const auto& [key, value] : *dict) text += (text.empty() ? "{\"" : ",\"") + key + "\":" + json(value);
  return text.empty() ? "{}" : text + "}";
}

}  // namespace

Value list(List items) {
  Value value;
  value.held = std::make_shared<List>(std::move(items));
  return value;
}
Value dict(Dict pairs) {
  Value value;
  value.held = std::make_shared<Dict>(std::move(pairs));
  return value;
}
Value tuple(List items) { return Value::Tuple{std::make_shared<List>(std::move(items))}; }

void set(Dict& dict, std::string_view key, Value value) {
  const auto at = std::find_if(dict.begin(), dict.end(), [&](const auto& pair) { return pair.first == key; });
  if (at == dict.end()) {
    dict.emplace_back(key, std::move(value));
  } else {
    at->second = std::move(value);
  }
}

Dict entry(std::int64_t record_id, std::int64_t seq, std::string_view profiling_name, const Dict& changes) {
  Dict made{{"record_id", record_id},
            {"pg_id", 0},
            {"process_group", tuple({"0", "default_pg"})},
            {"thread_name", "python"},
            {"thread_id", "140187337086784"},
            {"collective_seq_id", seq},
            {"p2p_seq_id", 0},
            {"op_id", record_id + 1},
            {"profiling_name", std::string(profiling_name)},
            {"time_created_ns", std::int64_t{1'700'000'000'000'000'000} + record_id},
            {"input_sizes", list({list({8, 4})})},
            {"input_dtypes", list({"Float"})},
            {"output_sizes", list({list({8, 4})})},
            {"output_dtypes", list({"Float"})},
            {"state", "scheduled"},
            {"time_discovered_started_ns", Value()},
            {"time_discovered_completed_ns", Value()},
            {"retired", false},
            {"timeout_ms", 600000},
            {"is_p2p", false}};
  for (auto& [key, value] : changes) set(made, key, value);
  return made;
}

Dict dump(std::string_view ranks, List entries) {
  return {{"version", "2.10"},
          {"pg_config", dict({{"0", dict({{"name", "0"}, {"desc", "default_pg"}, {"ranks", std::string(ranks)}})}})},
          {"comm_lib_version", "2.27.5"},
          {"pg_status", dict({{"0", dict({{"last_enqueued_collective", 7},
                                          {"last_started_collective", -1},
                                          {"last_completed_collective", 6}})}})},
          {"entries", list(std::move(entries))}};
}

std::string torch_pickle(const Value& value) { return Pickler(true, 2).pickle(value); }
std::string python_pickle(const Value& value, int protocol) { return Pickler(false, protocol).pickle(value); }
std::string json(const Value& value) {
  return std::visit([](const auto& held) { return json_held(held); }, value.held);
}

}  // namespace ddx::testing
