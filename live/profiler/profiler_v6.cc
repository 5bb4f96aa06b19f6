// Version 6 of the plugin interface: NCCL 2.29 and 2.30.
#include "live/profiler/plugin.h"

using PluginOfVersion = ddx::profiler::Plugin<6, ddx::profiler::EventV5>;

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV5 ncclProfiler_v6 = {"ddx",
                                                                                  PluginOfVersion::init,
                                                                                  PluginOfVersion::start_event,
                                                                                  PluginOfVersion::stop_event,
                                                                                  PluginOfVersion::record_state,
                                                                                  PluginOfVersion::finalize};
}
