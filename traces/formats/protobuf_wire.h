// The wire format of protocol buffers, read without a schema: fields one after another, bounds checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ddx::formats {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // varint, fixed64, fixed32
  std::string_view bytes;   // bytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ >= bytes_.size(); }
  std::size_t offset() const { return at_; }

  // nullopt: the bytes end too early, or a number has more than 64 bits. Nothing more can be read then.
  std::optional<std::uint64_t> varint();
  // A length and as many bytes.
  std::optional<std::string_view> block();
  // The next field; nullopt also for groups, which are long out of use, and for field number 0.
  std::optional<WireField> field();

 private:
  std::optional<std::uint64_t> fixed(std::size_t size);

  std::string_view bytes_;
  std::size_t at_ = 0;
};

// The number that a signed type of variable length stands for ("zigzag").
constexpr std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace ddx::formats
