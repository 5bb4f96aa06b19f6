// Any bytes as a flight-recorder JSON dump.
#include "tests/fuzz/flight_recorder_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ddx::testing::check_flight_recorder(ddx::formats::flight_recorder_json_importer(), data, size);
}
