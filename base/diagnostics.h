// Diagnostics: named counters of what was wrong with the input. Bad data is counted here, never dropped in silence, so
// that a report can say how far to trust itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ddx {

enum class DiagnosticSeverity { info, notice, data_loss, error };

struct Diagnostic {
  std::string name;  // "flight_recorder.truncated_file": room or format, then what
  DiagnosticSeverity severity = DiagnosticSeverity::info;
  std::uint64_t count = 0;
  std::string detail;  // of the first one seen: file, place and expectation
};

class Diagnostics {
 public:
  void count(std::string_view name, DiagnosticSeverity severity, std::string_view detail, std::uint64_t times = 1);
  void merge(const Diagnostics& other);
  bool empty() const { return entries_.empty(); }
  std::uint64_t count_of(std::string_view name) const;
  std::vector<Diagnostic> entries() const;  // by name

 private:
  std::map<std::string, Diagnostic, std::less<>> entries_;
};

std::string_view name_of(DiagnosticSeverity severity);  // "info" "notice" "data-loss" "error"

}  // namespace ddx
