#include "cli/commands/compute_options.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "cli/commands/common_options.h"
#include "cli/commands/number_options.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/hardware.h"
#include "sim/compute/roofline.h"

namespace ddx::cli {
namespace {

std::string known_gpus() {
  std::vector<std::string_view> names;
  for (const sim::GpuModel& model : sim::gpu_models()) names.push_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

sim::Gpu gpu_named(const std::string& text) {
  const sim::GpuModel* model = sim::find_gpu_model(text);
  if (model != nullptr && model->name == text) return gpu_of(*model);
  try {
    if (sim::Gpu gpu = sim::read_cluster(text).gpu; !gpu.name.empty() || gpu.bf16_flops) return gpu;
  } catch (const RequestError&) {  // no cluster; one whose file is none says so by itself
  }
  throw UsageError(fmt::format("--recorded-on '{}': expected one of {}, or a cluster whose GPU is meant",
                               printable_text(text, 60), known_gpus()));
}

// On what the trace says that it was recorded, where that is one known model that differs from the cluster's.
std::optional<sim::Gpu> recorded_gpu(const Trace& trace, const sim::Gpu& to, std::vector<std::string>& told) {
  std::set<std::string> devices;
  for (const RankRecord& record : trace.ranks) devices.insert(record.device);
  devices.erase("");
  if (devices.empty()) return std::nullopt;
  const sim::GpuModel* model = sim::find_gpu_model(*devices.begin());
  if (devices.size() > 1 || model == nullptr) {
    told.push_back(
        fmt::format("recorded on {}, {}: computations take as long as recorded (--recorded-on says what to take)",
                    fmt::join(devices, ", "), model == nullptr ? "whose peaks are not known" : "on several models"));
    return std::nullopt;
  }
  if (model->name == to.name) return std::nullopt;
  return gpu_of(*model);
}

std::string figures(const sim::Gpu& gpu, sim::MathType type) {
  return fmt::format("{} ({:g} TFLOP/s {}, {:g} TB/s)", gpu.name.empty() ? "the cluster's GPU" : gpu.name,
                     sim::peak_of(gpu, type).value_or(0) / 1e12, name_of(type),
                     gpu.memory_bytes_per_second.value_or(0) / 1e12);
}

double told_factor(const ComputeOptions& options, const sim::Gpu& from, const sim::Gpu& to,
                   std::vector<std::string>& told) {
  const sim::MathType type = *sim::math_type_from(options.arithmetic);
  const sim::RooflineFactors ends = roofline_factors(from, to, type);
  const std::string gpus = fmt::format("recorded on {}, predicted for {}", figures(from, type), figures(to, type));
  if (options.intensity) {
    const double factor = roofline_factor(from, to, type, *options.intensity);
    told.push_back(fmt::format("{}: by the roofline, computations of {:g} operations a byte take {:.3g} times as long",
                               gpus, *options.intensity, factor));
    return factor;
  }
  told.push_back(fmt::format(
      "{}: by the roofline, computations take {:.3g} times as long where arithmetic limits them, {:.3g} times where "
      "memory does. How many operations a byte they do is not known (--intensity): the longer, {:.3g}, was taken",
      gpus, ends.arithmetic, ends.memory, ends.slowest()));
  return ends.slowest();
}

}  // namespace

std::vector<CLI::Option*> add_compute_options(CLI::App& app, ComputeOptions& options) {
  CLI::Option* gpu =
      app.add_option("--recorded-on", options.recorded_on,
                     "The GPU that the trace was recorded on: computations are scaled to the cluster's by the roofline")
          ->option_text("GPU");
  CLI::Option* arithmetic = app.add_option("--arithmetic", options.arithmetic,
                                           "What most operations are done in: bf16 (also fp16), fp8, tf32, fp32")
                                ->check(CLI::IsMember({"bf16", "fp8", "tf32", "fp32"}))
                                ->option_text("TYPE");
  CLI::Option* intensity = add_amount(
      app, "--intensity", 1e9, [&options](double number) { options.intensity = number; },
      "Operations that computations do for each byte of memory traffic");
  return {gpu, arithmetic, intensity};
}

double compute_factor(const ComputeOptions& options, const Trace& trace, const std::optional<sim::Cluster>& cluster,
                      std::vector<std::string>& told) {
  const bool asked = !options.recorded_on.empty();
  const bool has_gpu = cluster && cluster->gpu.arch != sim::GpuArch::none;
  if (asked && !has_gpu) throw UsageError("--recorded-on needs a cluster with a GPU to scale to: --cluster CLUSTER");
  if (!has_gpu) return 1;
  const auto from = asked ? std::optional(gpu_named(options.recorded_on)) : recorded_gpu(trace, cluster->gpu, told);
  if (!from) {
    if (options.intensity)
      throw UsageError("--intensity: the trace does not say what it was recorded on; give --recorded-on");
    return 1;
  }
  try {
    return told_factor(options, *from, cluster->gpu, told);
  } catch (const Error& error) {
    throw UsageError(fmt::format("computations cannot be scaled: {}", error.what()));
  }
}

}  // namespace ddx::cli
