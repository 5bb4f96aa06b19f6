#include "traces/formats/tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "traces/formats/csv.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/log_sniff.h"

namespace ddx::formats {
namespace {

constexpr std::string_view kDescribesLaunch = "describes the launch, which this version does not judge";
constexpr std::size_t kMaxScript = 32 * 1024;

// ---- address tables -------------------------------------------------------------------------------------------------

struct AddressColumns {
  std::optional<std::size_t> rank, host, ip;
};

AddressColumns address_columns(const std::vector<std::string>& header) {
  AddressColumns columns;
  columns.rank = column(header, {"rank", "global_rank"});
  columns.host = column(header, {"host", "hostname", "node"});
  columns.ip = column(header, {"ip", "address", "addr", "ip_address"});
  return columns;
}

// One row's event; counts what it cannot use.
void add_address(const std::vector<std::string>& row, std::string_view text, std::uint64_t line,
                 const AddressColumns& columns, Evidence& out) {
  const auto cell = [&](std::optional<std::size_t> at) {
    return at && *at < row.size() ? printable(row[*at], 255) : std::string();
  };
  const std::string rank_cell = cell(columns.rank);
  const auto rank = rank_at(rank_cell);
  if (!rank) {
    out.diagnostics.count(
        "table.bad_rank", DiagnosticSeverity::data_loss,
        out.inputs.front().path + ":" + std::to_string(line) + ": expected a rank, found \"" + rank_cell + "\"");
    return;
  }
  LogEvent event;
  event.line = line;
  event.text = printable(text, 400);
  event.rank = *rank;
  event.host = cell(columns.host);
  event.fact = RankAddress{*rank, event.host, cell(columns.ip)};
  out.events.push_back(std::move(event));
}

void read_addresses(const Source& source, const ImportOptions& options, Evidence& out) {
  std::string_view rest = source.bytes;
  const AddressColumns columns = address_columns(header_of(rest));
  take_line(rest);
  std::vector<RankId> ranks;
  for (std::uint64_t line = 2; !rest.empty(); ++line) {
    const std::string_view row = take_line(rest);
    if (trimmed(row).empty()) continue;
    if (out.events.size() >= options.max_events_per_file || row.size() > kMaxCsvRow) {
      out.diagnostics.count("table.too_long", DiagnosticSeverity::data_loss,
                            source.path + ":" + std::to_string(line) + ": more rows, or a longer one, than ddx keeps");
      continue;
    }
    const std::size_t before = out.events.size();
    add_address(cells_of(row), row, line, columns, out);
    if (out.events.size() > before) ranks.push_back(*out.events.back().rank);
  }
  out.inputs.front().ranks.insert(RankSet(std::move(ranks)));
}

Sniff sniff_addresses(const std::string& path, std::string_view head) {
  if (!has_extension(path, {".csv"})) return Sniff::no;
  const std::vector<std::string> header = header_of(head);
  // "RANK" is an environment variable: another table.
  if (std::find(header.begin(), header.end(), "RANK") != header.end()) return Sniff::no;
  const AddressColumns columns = address_columns(header);
  if (!columns.rank || (!columns.ip && !columns.host)) return Sniff::no;
  return columns.ip ? Sniff::sure : Sniff::likely;
}

// ---- environments ---------------------------------------------------------------------------------------------------

bool is_variable(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "RANK",        "WORLD_SIZE",  "LOCAL_RANK",         "LOCAL_WORLD_SIZE",     "GROUP_RANK",          "NODE_RANK",
      "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
  static constexpr std::string_view kPrefixes[] = {"SLURM_", "OMPI_", "PMI_", "PMIX_", "NCCL_", "TORCH_",
                                                   "UCX_",   "RCCL_", "MLX_", "HSA_",  "CUDA_", "TORCHELASTIC_",
                                                   "FI_",    "PALS_", "PBS_", "GLOO_"};
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view p) { return name.starts_with(p); });
}

bool is_env_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

// KEY=VALUE lines, with comments and "export" allowed, and nothing else.
bool looks_like_env_file(std::string_view head) {
  std::size_t pairs = 0;
  std::size_t others = 0;
  for (int lines = 0; !head.empty() && lines < 200; ++lines) {
    std::string_view line = trimmed(take_line(head));
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line.remove_prefix(7);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && is_env_name(line.substr(0, equals))) {
      ++pairs;
    } else {
      ++others;
    }
  }
  return pairs > 0 && pairs > others * 8;
}

bool names_a_rank(const std::vector<std::string>& header) {
  static constexpr std::string_view kRanks[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                "PMI_RANK"};
  return std::any_of(header.begin(), header.end(), [](const std::string& name) {
    return std::find(std::begin(kRanks), std::end(kRanks), name) != std::end(kRanks);
  });
}

Sniff sniff_env(const std::string& path, std::string_view head) {
  if (has_extension(path, {".env"})) return looks_like_env_file(head) ? Sniff::sure : Sniff::no;
  if (!has_extension(path, {".csv"})) return Sniff::no;
  const std::vector<std::string> header = header_of(head);
  const auto variables =
      std::count_if(header.begin(), header.end(), [](const std::string& c) { return is_variable(c); });
  if (variables == 0) return Sniff::no;
  if (names_a_rank(header)) return Sniff::sure;
  return variables >= 2 ? Sniff::likely : Sniff::maybe;
}

void read_env(const Source& source, const ImportOptions& options, Evidence& out) {
  out.inputs.front().note = kDescribesLaunch;
  if (!has_extension(source.path, {".csv"})) return;
  const std::vector<std::string> header = header_of(source.bytes);
  AddressColumns columns = address_columns(header);
  const auto rank = std::find(header.begin(), header.end(), "RANK");
  if (rank == header.end() || (!columns.host && !columns.ip)) return;
  columns.rank = static_cast<std::size_t>(rank - header.begin());
  read_addresses(source, options, out);
}

// ---- launch files ---------------------------------------------------------------------------------------------------

bool is_launch_command(std::string_view word) {
  static constexpr std::string_view kCommands[] = {
      "srun",       "mpirun",     "mpiexec", "torchrun",        "deepspeed",
      "accelerate", "horovodrun", "sbatch",  "torchrun_script", "salloc"};
  const std::size_t slash = word.rfind('/');
  if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
  return std::find(std::begin(kCommands), std::end(kCommands), word) != std::end(kCommands);
}

bool is_python(std::string_view word) {
  const std::size_t slash = word.rfind('/');
  if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
  return word.starts_with("python");
}

bool names_launch_module(std::string_view line) {
  return contains(line, "torch.distributed.run") || contains(line, "torch.distributed.launch");
}

bool is_launch_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("#SBATCH ") || line.starts_with("#PBS ") || line.starts_with("#BSUB ")) return true;
  if (line.empty() || line.front() == '#') return false;
  // Assignments and wrappers may stand before the command.
  for (int words = 0; words < 12 && !line.empty(); ++words) {
    const std::string_view word = next_word(line);
    if (is_launch_command(word)) return true;
    if (is_python(word)) return names_launch_module(line);
    const bool passes = contains(word, "=") || word == "exec" || word == "nohup" || word == "time" || word == "env" ||
                        word == "sudo" || word == "$" || word == "command:";
    if (!passes) return false;
  }
  return false;
}

bool is_job_description(std::string_view head) {
  for (std::string_view kind : {"PyTorchJob", "MPIJob", "TrainJob", "RayJob", "JobSet", "LeaderWorkerSet"}) {
    if (contains(head, "kind: " + std::string(kind))) return true;
  }
  return contains(head, "torchrun") || contains(head, "torch.distributed.run") || contains(head, "mpirun");
}

// "node-a slots=8", "node-a:8", one host a line.
bool is_host_file(const std::string& path, std::string_view head) {
  const std::string name = lower(file_name(path));
  if (!contains(name, "host")) return false;
  std::size_t hosts = 0;
  for (int lines = 0; !head.empty() && lines < 100; ++lines) {
    std::string_view line = trimmed(take_line(head));
    if (line.empty() || line.front() == '#') continue;
    std::string_view rest = line;
    next_word(rest);
    rest = trimmed(rest);
    const bool plain = rest.empty() && line.size() < 256;
    if (!plain && !rest.starts_with("slots") && !rest.starts_with("max_slots")) return false;
    ++hosts;
  }
  return hosts > 0;
}

bool holds_launch_line(std::string_view head) {
  for (int lines = 0; !head.empty() && lines < 2000; ++lines) {
    const std::string_view line = trimmed(take_line(head));
    // In a script the module may stand on a line that goes on.
    if (is_launch_line(line) || (!line.starts_with("#") && names_launch_module(line))) return true;
  }
  return false;
}

Sniff sniff_launch(const std::string& path, std::string_view head) {
  if (head.empty() || contains(head, std::string_view("\0", 1))) return Sniff::no;
  if (has_extension(path, {".sbatch", ".slurm", ".pbs"})) return Sniff::sure;
  if (has_extension(path, {".yaml", ".yml"})) return is_job_description(head) ? Sniff::likely : Sniff::no;
  if (has_extension(path, {".sh", ".bash"})) return holds_launch_line(head) ? Sniff::sure : Sniff::no;
  // Logs echo the commands, and even the script, that they come from.
  if (has_log_extension(path)) return Sniff::no;
  const std::string name = lower(file_name(path));
  const bool script = head.starts_with("#!");
  if (!script && holds_a_known_line(head)) return Sniff::no;
  if (script || name.starts_with("launch")) return holds_launch_line(head) ? Sniff::sure : Sniff::no;
  if (is_host_file(path, head)) return Sniff::likely;
  const bool plain = has_extension(path, {".txt"}) || !contains(name, ".");
  // What is long is what a command printed.
  if (!plain || head.size() > kMaxScript) return Sniff::no;
  std::string_view rest = head;
  std::string_view first;
  while (!rest.empty() && (first.empty() || first.front() == '#')) first = trimmed(take_line(rest));
  return is_launch_line(first) ? Sniff::likely : Sniff::no;
}

void read_launch(const Source&, const ImportOptions&, Evidence& out) { out.inputs.front().note = kDescribesLaunch; }

}  // namespace

Importer launch_file_importer() {
  return {"launch", "launch scripts, job descriptions and host files, named and not judged", sniff_launch, read_launch};
}

Importer address_table_importer() {
  return {"address-table", "CSV with the columns rank, host, ip", sniff_addresses, read_addresses};
}

Importer env_table_importer() {
  return {"env-table", "environments of processes (CSV or KEY=VALUE), of which only addresses are used", sniff_env,
          read_env};
}

}  // namespace ddx::formats
