#include "traces/formats/flight_recorder.h"

namespace ddx::formats {

Importer flight_recorder_pickle_importer() {
  return {"flight_recorder_pickle_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

Importer flight_recorder_json_importer() {
  return {"flight_recorder_json_importer", "", [](const std::string&, std::string_view) { return Sniff::no; },
          [](const Source&, const ImportOptions&, Evidence&) {}};
}

}  // namespace ddx::formats
