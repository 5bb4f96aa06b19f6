#include "traces/formats/log_scan.h"

#include <algorithm>
#include <charconv>

#include "base/printable.h"

namespace ddx::formats {

std::optional<std::int64_t> number_at(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> hex_at(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<RankId> rank_from(std::optional<std::int64_t> value) {
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return std::nullopt;
  return RankId(*value);
}

std::optional<RankId> rank_at(std::string_view text) { return rank_from(number_at(text)); }

std::optional<std::string_view> rest_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const auto rest = rest_after(text, key);
  return rest ? number_at(*rest) : std::nullopt;
}

std::optional<std::uint64_t> count_after(std::string_view text, std::string_view key) {
  const auto value = number_after(text, key);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string_view until(std::string_view text, std::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

std::string_view word_at(std::string_view text) { return until(text, " \t"); }

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  const std::string_view word = word_at(text);
  text.remove_prefix(word.size());
  return word;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

bool is_host_name(std::string_view text) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; };
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), fits);
}

std::optional<std::string_view> socket_error_in(std::string_view text) {
  static constexpr std::string_view kErrors[] = {"Broken pipe",
                                                 "Connection reset by peer",
                                                 "Connection closed by peer",
                                                 "Connection closed by remote peer",
                                                 "Connection refused",
                                                 "Connection timed out",
                                                 "No route to host",
                                                 "Application timeout caused pair closure"};
  for (std::string_view error : kErrors) {
    if (contains(text, error)) return error;
  }
  return std::nullopt;
}

std::string printable(std::string_view text, std::size_t limit) {
  return is_plain_ascii(text) ? std::string(text.substr(0, limit)) : printable_text(text, limit);
}

}  // namespace ddx::formats
