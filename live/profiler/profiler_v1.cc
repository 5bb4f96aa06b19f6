// Version 1 of the plugin interface: NCCL 2.23.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<1, ddx::profiler::EventV1>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV1 ncclProfiler_v1 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
