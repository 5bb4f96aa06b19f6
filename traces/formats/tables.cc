#include "traces/formats/tables.h"

namespace ddx::formats {

Importer launch_file_importer() {
  return {"launch_file_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

Importer address_table_importer() {
  return {"address_table_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

Importer env_table_importer() {
  return {"env_table_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

}  // namespace ddx::formats
