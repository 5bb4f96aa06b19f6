// Version 4 of the plugin interface: NCCL 2.27.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<4, ddx::profiler::EventV4>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV4 ncclProfiler_v4 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
