#include "traces/formats/log.h"

namespace ddx::formats {

Importer log_importer() {
  return {"log_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

}  // namespace ddx::formats
