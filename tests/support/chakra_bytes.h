// Chakra execution traces put together byte by byte from the schema's field numbers.
#pragma once

#include <cstdint>
#include <string>

namespace ddx::testing::chakra {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
inline std::string number(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
inline std::string bytes(unsigned field, const std::string& text) {
  return varint(field << 3 | 2) + varint(text.size()) + text;
}
// `kind`: of the attribute's value, 9 is int64.
inline std::string attribute(const std::string& name, unsigned kind, std::uint64_t value) {
  return bytes(10, bytes(1, name) + number(kind, value));
}
inline std::string text_attribute(const std::string& name, const std::string& text) {
  return bytes(10, bytes(1, name) + bytes(29, text));
}
inline std::string message(const std::string& body) { return varint(body.size()) + body; }
inline std::string node(std::uint64_t id, unsigned type, const std::string& rest) {
  return message(number(1, id) + bytes(2, "n" + std::to_string(id)) + number(3, type) + rest);
}
inline std::string on(std::uint64_t id) { return number(5, id); }
inline std::string control(std::uint64_t id) { return number(4, id); }
inline std::string micros(std::uint64_t duration) { return number(7, duration); }
inline std::string on_cpu() { return attribute("is_cpu_op", 27, 1); }
inline const std::string kHead = message(bytes(1, "0.0.4"));

// A collective of so many bytes.
inline std::string collective(std::uint64_t id, std::uint64_t kind, std::uint64_t size, const std::string& rest = {}) {
  return node(id, 7, attribute("comm_type", 9, kind) + attribute("comm_size", 9, size) + rest);
}
inline std::string send(std::uint64_t id, std::uint64_t to, std::uint64_t size, const std::string& rest = {}) {
  return node(id, 5, attribute("comm_dst", 9, to) + attribute("comm_size", 9, size) + rest);
}
inline std::string receive(std::uint64_t id, std::uint64_t from, std::uint64_t size, const std::string& rest = {}) {
  return node(id, 6, attribute("comm_src", 9, from) + attribute("comm_size", 9, size) + rest);
}

}  // namespace ddx::testing::chakra
