#include "traces/formats/chakra.h"
#include "traces/formats/comm_groups.h"
#include "traces/formats/ddx.h"
#include "traces/formats/flight_recorder.h"
#include "traces/formats/importer.h"
#include "traces/formats/kineto.h"
#include "traces/formats/log.h"
#include "traces/formats/megatrace.h"
#include "traces/formats/nccl_ras.h"
#include "traces/formats/op_table.h"
#include "traces/formats/ops.h"
#include "traces/formats/own_report.h"
#include "traces/formats/process_report.h"
#include "traces/formats/tables.h"

namespace ddx::formats {

// The one list of formats. Where two score alike on a file, the earlier one reads it.
const std::vector<Importer>& importers() {
  static const std::vector<Importer> kImporters{
      ddx_importer(),
      own_report_importer(),
      process_report_importer(),
      flight_recorder_pickle_importer(),
      kineto_importer(),  // before dumps in JSON: a profile may hold a pg_config too
      host_trace_importer(),
      flight_recorder_json_importer(),
      ops_importer(),
      megatrace_importer(),
      chakra_importer(),
      comm_groups_importer(),
      nccl_ras_json_importer(),
      op_table_importer(),
      address_table_importer(),
      env_table_importer(),
      launch_file_importer(),
      log_importer(),
  };
  return kImporters;
}

}  // namespace ddx::formats
