// What is known of the constants before any run is looked at: from published peaks and the smallest messages' times
// (hardware.cc has their sources), and from NCCL's own model. `doubt` is how far that can be wrong.
#include <fmt/format.h>

#include <span>
#include <type_traits>

#include "sim/calibrate/nccl_fit.h"
#include "sim/cluster/names.h"

namespace ddx::sim {
namespace {

// A group of constants: one, one a generation, or one a kind of network.
struct Group {
  std::string_view name;
  std::span<double> (*in)(NcclTimes&);
  double doubt;
  std::vector<double> known;
  std::vector<std::size_t> measured = {};  // those that a published peak tells: a tenth of the doubt
};

template <auto kMember>
std::span<double> in(NcclTimes& times) {
  auto& value = times.*kMember;
  if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, double>) {
    return {&value, 1};
  } else {
    return value;
  }
}

#define DDX_GROUP(member) #member, in < &NcclTimes::member>

// Peaks were reached at some GiB, where filling still takes a hundredth: what is known is that much more.
// By generation: volta, ampere, hopper, blackwell, cdna3. By network: infiniband, roce, efa1, efa, tcpx, tcpxo, tcp.
const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups{
      // The smallest all_reduce of eight H100, a process each: 13 to 17 us.
      {DDX_GROUP(launch), .5, {45, 38, 17, 35, 20}, {2}},
      // Peaks of rings: V100 134 of 120, A100 232 of 240, H200 367 of 360, B200 682 of 720, MI300X 312.9 of 336 GB/s.
      {DDX_GROUP(ring_share), .05, {1.12, 1, 1.02, .95, .94}, {4}},
      {DDX_GROUP(ring_loop), .5, {.02, .38, .06, .14, .1}},
      {DDX_GROUP(ring_fill), 1, {3, 10, 5, 3, 5}},
      {DDX_GROUP(ring_ranks_power), .3, {.8}},
      {DDX_GROUP(ring_power), .3, {.3}},
      {DDX_GROUP(rooted_fill), .5, {.7}},
      {DDX_GROUP(nvls_share), .05, {.64, .64, .64, .57, .64}},
      {DDX_GROUP(nvls_heads), .2, {.54}},
      {DDX_GROUP(nvls_cap), .03, {1.1, 1.1, 1.1, .933, 1.1}},
      {DDX_GROUP(nvls_fill), 1, {20, 20, 20, 20, 20}},
      {DDX_GROUP(nvls_ranks_power), 1, {.3}},
      {DDX_GROUP(nvls_power), .3, {.3}},
      {DDX_GROUP(tree_share), .2, {.75}},
      {DDX_GROUP(tree_fill), 1, {20}},
      {DDX_GROUP(p2p_launch), .5, {40}},
      // All_to_all of 8 ranks: 210 of A100's 240, 320 of H100's 360, 640 of B200's 720 GB/s.
      {DDX_GROUP(p2p_share), .05, {.88}},
      // B300 by number of channels: 6.2, 19.2, 29.4 GB/s of each.
      {DDX_GROUP(channel), .05, {6.2, 19.2, 29.4}},
      // ConnectX 48 of 50 GB/s; four nodes over EFA 381.8 of 400; kernel TCP 10 of 12.5.
      {DDX_GROUP(nic_share), .05, {.96, .92, .85, .97, .72, .9, .8}, {3}},
      // Two nodes of H100 over RoCE 328.9 of 400 in an all_gather, over TCPXO 188.7 of 200.
      {DDX_GROUP(ring_nic_share), .05, {.925, .832, .85, .93, .72, .94, .8}, {1}},
      // From the smallest collectives of two nodes: RoCE 54 us (all_gather), EFA 65 to 75 us (all_reduce).
      {DDX_GROUP(hop), .5, {6, 25, 60, 26, 470, 60, 30}, {3}},
      {DDX_GROUP(net_fill), 1, {50, 50, 800, 60, 500, 770, 800}},
      {DDX_GROUP(net_power), .3, {.19}},
      {DDX_GROUP(slow_knee), .5, {12}},
      {DDX_GROUP(slow_power), .5, {.05}},
      // Two nodes of H100 487.1 GB/s over a link of 450.
      {DDX_GROUP(between_cap), .05, {.9, .9, 1.093, .92, .9}, {2}},
      {DDX_GROUP(unforced_share), .1, {.96}},
      {DDX_GROUP(ring_net_fill), 1, {5}},
      {DDX_GROUP(domain_fill), 1, {300}},
      {DDX_GROUP(domain_power), .3, {.2}},
  };
  return kGroups;
}

std::string name_in(const Group& group, std::size_t i) {
  if (group.known.size() == kTimedArchs) return fmt::format("{}.{}", group.name, name_of(static_cast<GpuArch>(i + 1)));
  if (group.known.size() == kTimedFabrics) return fmt::format("{}.{}", group.name, name_of(static_cast<Fabric>(i)));
  return std::string(group.name);
}

bool is_measured(const Group& group, std::size_t i) {
  for (const std::size_t measured : group.measured) {
    if (measured == i) return true;
  }
  return false;
}

}  // namespace

const std::vector<NcclConstant>& nccl_constants() {
  static const std::vector<NcclConstant> kConstants = [] {
    std::vector<NcclConstant> constants;
    for (const Group& group : groups()) {
      for (std::size_t i = 0; i < group.known.size(); ++i) {
        constants.push_back(
            {name_in(group, i), group.known[i], is_measured(group, i) ? group.doubt / 10 : group.doubt});
      }
    }
    return constants;
  }();
  return kConstants;
}

std::vector<double> constants_of(const NcclTimes& times) {
  NcclTimes copy = times;
  std::vector<double> constants;
  for (const Group& group : groups()) {
    const std::span<double> values = group.in(copy);
    constants.insert(constants.end(), values.begin(), values.end());
  }
  return constants;
}

NcclTimes times_of(const std::vector<double>& constants) {
  NcclTimes times;
  std::size_t next = 0;
  for (const Group& group : groups()) {
    for (double& value : group.in(times)) value = constants.at(next++);
  }
  return times;
}

std::string times_source(const NcclTimes& times) {
  std::string text =
      "// The constants of nccl_time.h, as the fit gives them: build/release/tests/accuracy/ddx_accuracy --constants.\n"
      "// By generation: volta, ampere, hopper, blackwell, cdna3; by network: infiniband, roce, efa1, efa, tcpx, "
      "tcpxo,\n"
      "// tcp.\n"
      "#include \"sim/collectives/nccl_time.h\"\n\nnamespace ddx::sim {\n\nconst NcclTimes& nccl_times() {\n"
      "  static const NcclTimes kTimes{\n";
  NcclTimes copy = times;
  for (const Group& group : groups()) {
    const std::span<double> values = group.in(copy);
    std::vector<std::string> parts;
    for (const double value : values) parts.push_back(fmt::format("{:.4g}", value));
    const std::string list = fmt::format("{}", fmt::join(parts, ", "));
    text += fmt::format("      .{} = {},\n", group.name, values.size() == 1 ? list : "{" + list + "}");
  }
  return text + "  };\n  return kTimes;\n}\n\n}  // namespace ddx::sim\n";
}

}  // namespace ddx::sim
