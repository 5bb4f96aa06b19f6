#include "traces/formats/protobuf_wire.h"

namespace ddx::formats {

std::optional<std::uint64_t> WireReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (at_end()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> WireReader::block() {
  const auto size = varint();
  if (!size || *size > bytes_.size() - at_) return std::nullopt;
  const std::string_view bytes = bytes_.substr(at_, static_cast<std::size_t>(*size));
  at_ += bytes.size();
  return bytes;
}

// Least byte first.
std::optional<std::uint64_t> WireReader::fixed(std::size_t size) {
  if (bytes_.size() - at_ < size) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[at_ + i]);
  at_ += size;
  return value;
}

std::optional<WireField> WireReader::field() {
  const auto key = varint();
  if (!key || *key >> 3 == 0 || *key >> 3 > 0x1FFFFFFF) return std::nullopt;
  WireField field;
  field.number = static_cast<std::uint32_t>(*key >> 3);
  std::optional<std::uint64_t> value = 0;
  switch (*key & 7) {
    case 0: value = varint(); break;
    case 1:
      field.type = WireType::fixed64;
      value = fixed(8);
      break;
    case 2: {
      field.type = WireType::bytes;
      const auto bytes = block();
      if (!bytes) return std::nullopt;
      field.bytes = *bytes;
      break;
    }
    case 5:
      field.type = WireType::fixed32;
      value = fixed(4);
      break;
    default: return std::nullopt;
  }
  if (!value) return std::nullopt;
  field.value = *value;
  return field;
}

}  // namespace ddx::formats
