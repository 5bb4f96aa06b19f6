// Version 3 of the plugin interface: NCCL 2.26.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<3, ddx::profiler::EventV3>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV3 ncclProfiler_v3 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
