// Version 6 of the plugin interface: NCCL 2.29 and 2.30.
#include "live/profiler/profiler_v5.h"

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV5 ncclProfiler_v6 = ddx::profiler::NewPlugin<6>::plugin();
}
