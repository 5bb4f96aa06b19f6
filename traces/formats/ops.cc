#include "traces/formats/ops.h"

namespace ddx::formats {

Importer ops_importer() {
  return {"ops_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

}  // namespace ddx::formats
