// Numbers and words out of a line of text. Any bytes are allowed; nothing here allocates by what the text claims.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace ddx::formats {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool contains(std::string_view text, std::string_view fragment) {
  return text.find(fragment) != std::string_view::npos;
}

// A decimal number (with sign) or hexadecimal digits (with or without 0x) at the beginning of `text`.
std::optional<std::int64_t> number_at(std::string_view text);
std::optional<std::uint64_t> hex_at(std::string_view text);

// A number as a rank; nullopt beyond 32 bits. Negative ones pass: a finding must be able to name what a launcher set.
std::optional<RankId> rank_from(std::optional<std::int64_t> value);
std::optional<RankId> rank_at(std::string_view text);

// What follows the first `key`, blanks skipped; nullopt where there is no key, or no number behind it.
std::optional<std::string_view> rest_after(std::string_view text, std::string_view key);
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key);
// As above, for counts: negative ones are no value.
std::optional<std::uint64_t> count_after(std::string_view text, std::string_view key);

// Up to the first of `ends`, or all of it.
std::string_view until(std::string_view text, std::string_view ends);
// Up to the first blank. `next_word` also takes it, and the blanks before it, off `text`.
std::string_view word_at(std::string_view text);
std::string_view next_word(std::string_view& text);
std::string_view trimmed(std::string_view text);
// ASCII letters only: bytes of other characters stay as they are.
std::string lower(std::string_view text);
bool all_digits(std::string_view text);  // and not empty
// Whether all of it may stand in a host's name.
bool is_host_name(std::string_view text);

// How the system words the failure of a connection ("Broken pipe"), where `text` holds such words.
std::optional<std::string_view> socket_error_in(std::string_view text);

// printable_text() of base/printable.h, quick for plain text.
std::string printable(std::string_view text, std::size_t limit);

}  // namespace ddx::formats
