// Rates and times as people write them, with their units: "50GB/s", "400Gb/s", "1us". GB = 10^9 bytes, GiB = 2^30,
// Gb = 10^9 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/engine/picos.h"

namespace ddx::sim {

// Bytes a second, more than 0. Units: B/s kB/s MB/s GB/s TB/s, KiB/s MiB/s GiB/s TiB/s, b/s kb/s Mb/s Gb/s Tb/s (Gbps
// too). Throws Error that names what was expected.
std::uint64_t parse_rate(std::string_view text);
// Units: ps ns us ms s. Throws Error. At most 10^6 s.
Picos parse_time(std::string_view text);
// Floating-point operations a second: "989TFLOP/s", units GFLOP/s TFLOP/s PFLOP/s. Throws Error.
double parse_flops(std::string_view text);

// The shortest text that parse_rate and parse_time read as the same value: "12.5GB/s", "1us".
std::string format_rate(std::uint64_t bytes_per_second);
std::string format_time(Picos time);
std::string format_flops(double flops);  // "989TFLOP/s", to six digits

}  // namespace ddx::sim
