// Writes flight-recorder dumps for tests: a value tree, and the two ways in which real programs pickle it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ddx::testing {

struct Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;

// A Python value. Lists and dicts are shared by reference, as Python's are: the picklers write a shared one once.
struct Value {
  struct None {};
  struct Tuple {
    std::shared_ptr<List> items;
  };
  std::variant<None, bool, std::int64_t, double, std::string, std::shared_ptr<List>, std::shared_ptr<Dict>, Tuple> held;

  // Implicit, so that a dump reads like the Python literal that it stands for.
  // NOLINTBEGIN(google-explicit-constructor)
  Value() : held(None{}) {}
  Value(bool value) : held(value) {}
  Value(int value) : held(std::int64_t{value}) {}
  Value(std::int64_t value) : held(value) {}
  Value(double value) : held(value) {}
  Value(const char* text) : held(std::string(text)) {}
  Value(std::string text) : held(std::move(text)) {}
  Value(Tuple tuple) : held(std::move(tuple)) {}
  // NOLINTEND(google-explicit-constructor)
};
Value list(List items);
Value dict(Dict pairs);
Value tuple(List items);

// One entry with the keys of version 2.10, in the recorder's order; `changes` replace or add keys.
Dict entry(std::int64_t record_id, std::int64_t seq, std::string_view profiling_name, const Dict& changes = {});
// A dump of version 2.10 with one group "0" of `ranks` ("[0, 1]").
Dict dump(std::string_view ranks, List entries);
void set(Dict& dict, std::string_view key, Value value);

// As torch::jit::Pickler writes: protocol 2, each distinct string once, dicts put after they are filled.
std::string torch_pickle(const Value& value);
// As Python's pickle.dumps writes with protocol 2 or 4: containers put before they are filled, in batches of 1,000.
std::string python_pickle(const Value& value, int protocol);
std::string json(const Value& value);

}  // namespace ddx::testing
