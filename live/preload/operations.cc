// Collectives, sends and receives, one-sided operations, groups.
#include "live/capture/ddx_trace.h"
#include "live/preload/call.h"

using namespace ddx::nccl;     // NOLINT(google-build-using-namespace): the words of the functions below
using namespace ddx::preload;  // NOLINT(google-build-using-namespace)
using ddx::capture::CallKind;

namespace {

CallFacts named(const char* name, Comm comm, Stream stream) {
  CallFacts facts;
  facts.name = name;
  facts.comm = comm;
  facts.stream = stream;
  return facts;
}

// An end of a group: of the outermost, what it made is there.
template <Function kFunction, class... Arguments>
Result end_group(const void* caller, Arguments... arguments) {
  Library* library = site_of(caller, false).library;
  const Result result = real<kFunction>(library, arguments...);
  Current& current = t_current;
  if (current.inside != 0 || current.groups == 0 || --current.groups != 0) return result;
  current.batch = 0;
  current.pendings = 0;
  close_group(result == kSuccess || result == kInProgress);
  return result;
}

}  // namespace

DDX_NCCL_EXPORT Result ncclAllReduce(const void* send, void* recv, std::size_t count, DataType type, ReduceOp op,
                                     Comm comm, Stream stream) {
  Call call({CallKind::all_reduce, nullptr, comm, stream, count, type, op, -1, send, recv}, DDX_CALLER);
  return call.pass<Function::AllReduce>(send, recv, count, type, op, comm, stream);
}

DDX_NCCL_EXPORT Result ncclBroadcast(const void* send, void* recv, std::size_t count, DataType type, int root,
                                     Comm comm, Stream stream) {
  Call call({CallKind::broadcast, nullptr, comm, stream, count, type, -1, root, send, recv}, DDX_CALLER);
  return call.pass<Function::Broadcast>(send, recv, count, type, root, comm, stream);
}

DDX_NCCL_EXPORT Result ncclBcast(void* buffer, std::size_t count, DataType type, int root, Comm comm, Stream stream) {
  Call call({CallKind::broadcast, nullptr, comm, stream, count, type, -1, root, buffer, buffer}, DDX_CALLER);
  return call.pass<Function::Bcast>(buffer, count, type, root, comm, stream);
}

DDX_NCCL_EXPORT Result ncclReduce(const void* send, void* recv, std::size_t count, DataType type, ReduceOp op, int root,
                                  Comm comm, Stream stream) {
  Call call({CallKind::reduce, nullptr, comm, stream, count, type, op, root, send, recv}, DDX_CALLER);
  return call.pass<Function::Reduce>(send, recv, count, type, op, root, comm, stream);
}

DDX_NCCL_EXPORT Result ncclAllGather(const void* send, void* recv, std::size_t count, DataType type, Comm comm,
                                     Stream stream) {
  Call call({CallKind::all_gather, nullptr, comm, stream, count, type, -1, -1, send, recv}, DDX_CALLER);
  return call.pass<Function::AllGather>(send, recv, count, type, comm, stream);
}

DDX_NCCL_EXPORT Result ncclReduceScatter(const void* send, void* recv, std::size_t count, DataType type, ReduceOp op,
                                         Comm comm, Stream stream) {
  Call call({CallKind::reduce_scatter, nullptr, comm, stream, count, type, op, -1, send, recv}, DDX_CALLER);
  return call.pass<Function::ReduceScatter>(send, recv, count, type, op, comm, stream);
}

DDX_NCCL_EXPORT Result ncclAlltoAll(const void* send, void* recv, std::size_t count, DataType type, Comm comm,
                                    Stream stream) {
  Call call({CallKind::all_to_all, nullptr, comm, stream, count, type, -1, -1, send, recv}, DDX_CALLER);
  return call.pass<Function::AlltoAll>(send, recv, count, type, comm, stream);
}

DDX_NCCL_EXPORT Result ncclGather(const void* send, void* recv, std::size_t count, DataType type, int root, Comm comm,
                                  Stream stream) {
  Call call({CallKind::gather, nullptr, comm, stream, count, type, -1, root, send, recv}, DDX_CALLER);
  return call.pass<Function::Gather>(send, recv, count, type, root, comm, stream);
}

DDX_NCCL_EXPORT Result ncclScatter(const void* send, void* recv, std::size_t count, DataType type, int root, Comm comm,
                                   Stream stream) {
  Call call({CallKind::scatter, nullptr, comm, stream, count, type, -1, root, send, recv}, DDX_CALLER);
  return call.pass<Function::Scatter>(send, recv, count, type, root, comm, stream);
}

DDX_NCCL_EXPORT Result ncclSend(const void* buffer, std::size_t count, DataType type, int peer, Comm comm,
                                Stream stream) {
  Call call({CallKind::send, nullptr, comm, stream, count, type, -1, peer, buffer, nullptr}, DDX_CALLER);
  return call.pass<Function::Send>(buffer, count, type, peer, comm, stream);
}

DDX_NCCL_EXPORT Result ncclRecv(void* buffer, std::size_t count, DataType type, int peer, Comm comm, Stream stream) {
  Call call({CallKind::recv, nullptr, comm, stream, count, type, -1, peer, nullptr, buffer}, DDX_CALLER);
  return call.pass<Function::Recv>(buffer, count, type, peer, comm, stream);
}

DDX_NCCL_EXPORT Result ncclPutSignal(const void* buffer, std::size_t count, DataType type, int peer, void* window,
                                     std::size_t offset, int signal, int context, unsigned flags, Comm comm,
                                     Stream stream) {
  Call call(named("ncclPutSignal", comm, stream), DDX_CALLER);
  return call.pass<Function::PutSignal>(buffer, count, type, peer, window, offset, signal, context, flags, comm,
                                        stream);
}

DDX_NCCL_EXPORT Result ncclSignal(int peer, int signal, int context, unsigned flags, Comm comm, Stream stream) {
  Call call(named("ncclSignal", comm, stream), DDX_CALLER);
  return call.pass<Function::Signal>(peer, signal, context, flags, comm, stream);
}

DDX_NCCL_EXPORT Result ncclWaitSignal(int count, WaitSignal* signals, Comm comm, Stream stream) {
  Call call(named("ncclWaitSignal", comm, stream), DDX_CALLER);
  return call.pass<Function::WaitSignal>(count, signals, comm, stream);
}

DDX_NCCL_EXPORT Result ncclCommRegister(Comm comm, void* buffer, std::size_t size, void** handle) {
  Call call(named("ncclCommRegister", comm, nullptr), DDX_CALLER);
  return call.pass<Function::CommRegister>(comm, buffer, size, handle);
}

DDX_NCCL_EXPORT Result ncclCommWindowRegister(Comm comm, void* buffer, std::size_t size, void** window, int flags) {
  Call call(named("ncclCommWindowRegister", comm, nullptr), DDX_CALLER);
  return call.pass<Function::CommWindowRegister>(comm, buffer, size, window, flags);
}

DDX_NCCL_EXPORT Result ncclRedOpCreatePreMulSum(ReduceOp* op, void* scalar, DataType type, int residence, Comm comm) {
  Call call(named("ncclRedOpCreatePreMulSum", comm, nullptr), DDX_CALLER);
  return call.pass<Function::RedOpCreatePreMulSum>(op, scalar, type, residence, comm);
}

DDX_NCCL_EXPORT Result ncclRedOpDestroy(ReduceOp op, Comm comm) {
  Call call(named("ncclRedOpDestroy", comm, nullptr), DDX_CALLER);
  return call.pass<Function::RedOpDestroy>(op, comm);
}

DDX_NCCL_EXPORT Result ncclGroupStart() {
  Library* library = site_of(DDX_CALLER, false).library;
  const Result result = real<Function::GroupStart>(library);
  Current& current = t_current;
  if (result == kSuccess && current.inside == 0 && current.groups++ == 0) current.batch = ddx_batch();
  return result;
}

DDX_NCCL_EXPORT Result ncclGroupEnd() { return end_group<Function::GroupEnd>(DDX_CALLER); }

DDX_NCCL_EXPORT Result ncclGroupSimulateEnd(void* answer) {
  return end_group<Function::GroupSimulateEnd>(DDX_CALLER, answer);
}
