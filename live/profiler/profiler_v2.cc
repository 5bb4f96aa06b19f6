// Version 2 of the plugin interface: NCCL 2.24 and 2.25.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<2, ddx::profiler::EventV2>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV2 ncclProfiler_v2 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
