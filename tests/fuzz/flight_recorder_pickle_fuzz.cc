// Any bytes as a pickled flight-recorder dump.
#include "tests/fuzz/flight_recorder_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ddx::testing::check_flight_recorder(ddx::formats::flight_recorder_pickle_importer(), data, size);
}
