#include "analyzers/match/call_key.h"

#include <algorithm>

namespace ddx::analyzers {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

// A recorder's names for one kind vary between backends; only an op of no known kind is told by its name.
std::uint64_t key_of(const Signature& signature) {
  std::uint64_t hash = mix(1, static_cast<std::uint64_t>(signature.kind));
  if (signature.kind == OpKind::unknown) hash = mix(hash, signature.name.value);
  if (signature.kind == OpKind::barrier) return hash;
  hash = mix(hash, static_cast<std::uint64_t>(signature.type_in));
  hash = mix(hash, static_cast<std::uint64_t>(signature.redop));
  const auto count = shared_count(signature);
  hash = mix(hash, count ? *count + 1 : 0);
  if (signature.kind == OpKind::new_group) {
    for (std::int32_t rank : signature.members) hash = mix(hash, static_cast<std::uint64_t>(rank));
  }
  return hash;
}

// Whether a row is of the call: what other groups issued between the parts of a batch is none of it.
bool is_part(const Program& program, const Call& call, std::uint32_t row) {
  return call.rows == 1 || (program.comm_slot(row) == program.comm_slot(call.row) && program.seq(row) == call.seq);
}

std::vector<std::uint32_t> rows_of(const Program& program, const Call& call) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = call.row; row < call.row + call.rows; ++row) {
    if (is_part(program, call, row)) rows.push_back(row);
  }
  return rows;
}

// As many bytes of two datatypes: one buffer, read as another type.
bool same_bytes(const Signature& a, std::uint64_t count_a, const Signature& b, std::uint64_t count_b) {
  const auto bytes_a = element_bytes(a.type_in), bytes_b = element_bytes(b.type_in);
  return bytes_a && bytes_b && count_a != 0 && std::uint64_t{*bytes_a} * count_a == std::uint64_t{*bytes_b} * count_b;
}

Field difference(const JobView& job, const MemberView& a, std::uint32_t row_a, const MemberView& b,
                 std::uint32_t row_b) {
  const Signature& sa = job.trace->signature(a.program->signature(row_a));
  const Signature& sb = job.trace->signature(b.program->signature(row_b));
  if (sa.kind != sb.kind) return Field::kind;
  if (sa.kind == OpKind::unknown && sa.name != sb.name) return Field::kind;
  if (sa.kind == OpKind::barrier) return Field::none;
  if (sa.kind == OpKind::new_group && sa.members != sb.members) return Field::group_members;
  const auto count_a = shared_count(sa);
  const auto count_b = shared_count(sb);
  if (count_a && count_b && *count_a != *count_b)
    return same_bytes(sa, *count_a, sb, *count_b) ? Field::datatype : Field::count;
  if (sa.type_in != sb.type_in && sa.type_in != DataType::unknown && sb.type_in != DataType::unknown) {
    return Field::datatype;
  }
  if (is_rooted(sa.kind)) {
    const auto root_a = job.trace->peer(*a.record, sa);
    const auto root_b = job.trace->peer(*b.record, sb);
    if (root_a && root_b && *root_a != *root_b) return Field::root;
  }
  if (sa.redop != sb.redop && sa.redop != RedOp::unknown && sb.redop != RedOp::unknown) return Field::redop;
  return Field::none;
}

}  // namespace

std::string_view name_of(Field field) {
  switch (field) {
    case Field::none: return "nothing";
    case Field::kind: return "operation";
    case Field::group_members: return "member list";
    case Field::count: return "size";
    case Field::datatype: return "datatype";
    case Field::root: return "root";
    case Field::redop: return "reduction";
  }
  return "nothing";
}

std::optional<std::uint64_t> shared_count(const Signature& signature) {
  switch (signature.kind) {
    case OpKind::all_gather: return signature.count_out ? signature.count_out : signature.count_in;
    case OpKind::scatter: return signature.count_out;
    case OpKind::all_to_all:
      // Uneven parts are legal; only a call that looks even on every rank must be of one size.
      if (!signature.split_in.empty() || !signature.split_out.empty()) return std::nullopt;
      return signature.count_out.value_or(signature.count_in.value_or(0)) == signature.count_in ? signature.count_in
                                                                                                : std::nullopt;
    case OpKind::barrier:
    case OpKind::new_group:
    case OpKind::split_group: return std::nullopt;
    default: return signature.count_in;
  }
}

CallKeys::CallKeys(const JobView& job) : job_(&job) {
  by_signature_.reserve(job.trace->signatures().size());
  for (const Signature& signature : job.trace->signatures()) by_signature_.push_back(key_of(signature));
}

std::uint64_t CallKeys::key(const MemberView& member, const Call& call) const {
  std::uint64_t hash = 0;
  for (std::uint32_t row = call.row; row < call.row + call.rows; ++row) {
    if (!is_part(*member.program, call, row)) continue;
    const SignatureId id = member.program->signature(row);
    hash = mix(hash, by_signature_[id.value]);
    const Signature& signature = job_->trace->signature(id);
    if (signature.peer_slot && is_rooted(signature.kind)) {
      hash = mix(hash, static_cast<std::uint64_t>(job_->trace->peer(*member.record, signature).value_or(-1)));
    }
  }
  return hash;
}

std::vector<std::uint64_t> CallKeys::keys(const MemberView& member, std::size_t first, std::size_t limit) const {
  std::vector<std::uint64_t> all;
  const std::size_t end = std::min(member.calls.size(), first + std::min(limit, member.calls.size()));
  for (std::size_t i = first; i < end; ++i) all.push_back(key(member, member.calls[i]));
  return all;
}

Field first_difference(const JobView& job, const MemberView& a, const Call& call_a, const MemberView& b,
                       const Call& call_b) {
  const std::vector<std::uint32_t> rows_a = rows_of(*a.program, call_a), rows_b = rows_of(*b.program, call_b);
  if (rows_a.size() != rows_b.size()) return Field::kind;
  Field worst = Field::none;
  for (std::size_t i = 0; i < rows_a.size(); ++i) {
    const Field field = difference(job, a, rows_a[i], b, rows_b[i]);
    if (field != Field::none && (worst == Field::none || field < worst)) worst = field;
  }
  return worst;
}

}  // namespace ddx::analyzers
