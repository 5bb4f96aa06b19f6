// Version 5 of the plugin interface: NCCL 2.28.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<5, ddx::profiler::EventV5>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV5 ncclProfiler_v5 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
