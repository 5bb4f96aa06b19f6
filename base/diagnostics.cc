#include "base/diagnostics.h"

namespace ddx {

void Diagnostics::count(std::string_view name, DiagnosticSeverity severity, std::string_view detail,
                        std::uint64_t times) {
  const auto [at, fresh] = entries_.try_emplace(std::string(name));
  if (fresh) at->second = {std::string(name), severity, 0, std::string(detail)};
  at->second.count += times;
}

void Diagnostics::merge(const Diagnostics& other) {
  for (const auto& [name, entry] : other.entries_) count(name, entry.severity, entry.detail, entry.count);
}

std::uint64_t Diagnostics::count_of(std::string_view name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? 0 : at->second.count;
}

std::vector<Diagnostic> Diagnostics::entries() const {
  std::vector<Diagnostic> all;
  all.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) all.push_back(entry);
  return all;
}

std::string_view name_of(DiagnosticSeverity severity) {
  switch (severity) {
    case DiagnosticSeverity::info: return "info";
    case DiagnosticSeverity::notice: return "notice";
    case DiagnosticSeverity::data_loss: return "data-loss";
    case DiagnosticSeverity::error: return "error";
  }
  return "info";
}

}  // namespace ddx
