// The nodes of a Chakra execution trace as they stand in the file. Internal to the Chakra reader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace ddx::formats {

// NodeType of the schema; larger ones exist (storage) and are kept by number.
struct ChakraType {
  static constexpr std::uint64_t kMetadata = 1, kMemLoad = 2, kMemStore = 3, kCompute = 4, kSend = 5, kReceive = 6,
                                 kCollective = 7;
};

// Views are into the file.
struct ChakraNode {
  std::uint64_t id = 0;
  std::uint64_t type = 0;
  std::string_view name;
  std::uint64_t start_micros = 0;     // 0: not recorded
  std::uint64_t duration_micros = 0;  // 0: not recorded
  std::uint32_t first_dep = 0;        // of ChakraTrace::deps: data dependencies, then control dependencies
  std::uint32_t dep_count = 0;
  std::uint32_t control_count = 0;
  std::optional<bool> on_cpu;
  std::optional<std::int64_t> comm_type, comm_size, source, destination, tag, root;
  std::optional<std::int64_t> operations, tensor_bytes;  // num_ops, tensor_size: for who knows the machine's speed
  std::optional<std::int64_t> thread, stream;            // tid, stream: of PyTorch's converter
  std::string_view group;                                // pg_name; empty: the group of all ranks
};

// Process groups as PyTorch notes them: a list of objects with pg_name and ranks (or group_size), in JSON or in
// Python's quotes, or with its quotes escaped.
class GroupNotes {
 public:
  void read(std::string_view text);
  // nullptr: not noted.
  const std::vector<RankId>* members(std::string_view name) const;

 private:
  std::map<std::string, std::vector<RankId>, std::less<>> groups_;
  std::size_t listed_ = 0;  // ranks in all lists: a size makes a list of any length
};

struct ChakraTrace {
  std::string_view version;
  std::vector<ChakraNode> nodes;
  std::vector<std::uint64_t> deps;      // ids, control and data
  GroupNotes groups;                    // of the metadata nodes
  std::optional<std::uint64_t> cut_at;  // offset of the message that is not whole
  std::uint64_t left_out = 0;           // nodes beyond the limit
};

// False: these bytes cannot be the beginning of such a file.
bool may_be_chakra(std::string_view head);

// Reads all messages of the file. Throws Error (path, offset) where there is no node at all.
ChakraTrace read_chakra_nodes(const std::string& path, std::string_view bytes, std::uint64_t max_nodes);

}  // namespace ddx::formats
