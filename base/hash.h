// Hashes for tables whose keys come from input. Each process draws its own key, so that no file can be made whose keys
// all fall into one bucket. Only the order inside of such a table depends on it: never print in that order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ddx {

// Odd, drawn on the first call, the same for the rest of the process.
std::uint64_t hash_key();

// One step: both halves of a product of which nobody outside knows a factor.
inline std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t word, std::uint64_t key) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(hash ^ word) * key;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_text(std::string_view text, std::uint64_t key) {
  const auto load = [](const char* from, auto word) {
    std::memcpy(&word, from, sizeof(word));
    return std::uint64_t{word};
  };
  std::uint64_t hash = hash_mix(key, text.size(), ~key);
  const char* at = text.data();
  const char* const end = at + text.size();
  std::uint64_t last = 0;  // the last bytes, some of them for the second time where the length is no multiple
  if (text.size() >= 8) {
    for (; end - at > 8; at += 8) hash = hash_mix(hash, load(at, std::uint64_t{0}), key);
    last = load(end - 8, std::uint64_t{0});
  } else if (text.size() >= 4) {
    last = load(at, std::uint32_t{0}) << 32 | load(end - 4, std::uint32_t{0});
  } else {
    for (; at < end; ++at) last = last << 8 | static_cast<unsigned char>(*at);
  }
  return hash_mix(hash, last, key);
}

// For the std containers: of numbers, and of text that a string_view may look up.
struct KeyedHash {
  using is_transparent = void;
  std::uint64_t key = hash_key();

  std::size_t operator()(std::uint64_t number) const { return hash_mix(hash_mix(key, number, ~key), 0, key); }
  std::size_t operator()(std::string_view text) const { return hash_text(text, key); }
};

// Of a row of several words.
class RowHash {
 public:
  void add(std::uint64_t word) { hash_ = hash_mix(hash_, word, key_); }
  std::uint64_t value() const { return hash_mix(hash_, 0, key_); }

 private:
  std::uint64_t key_ = hash_key();
  std::uint64_t hash_ = ~key_;
};

}  // namespace ddx
