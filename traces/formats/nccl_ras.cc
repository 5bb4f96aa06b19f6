#include "traces/formats/nccl_ras.h"

namespace ddx::formats {

Importer nccl_ras_json_importer() {
  return {"nccl_ras_json_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

}  // namespace ddx::formats
