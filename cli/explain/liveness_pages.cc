#include "cli/explain_pages.h"

namespace ddx::cli {
namespace {

constexpr ExplainPage kPages[] = {
    {"dead-rank", "error", "A rank crashed, raised, was killed, or left no evidence where all others left theirs.",
     "that rank",
     "A traceback that nothing caught, a signal, an exit code, the kernel's out-of-memory line, or a dump "
     "that is missing from an otherwise complete set while everybody waits for that rank.",
     "Out of memory on the host or GPU, an exception in the data loader or the loss, preemption, a "
     "hardware fault.",
     "Read the named rank's own log from the end of its life backwards. Its first error counts; what the "
     "others print is a consequence.",
     "Not the ranks that report a time-out or a closed connection: they noticed it."},
    {"lagging-rank", "warning", "A rank is behind the others in what it enqueued, and the evidence does not show why.",
     "that rank",
     "Its last enqueued number is lower than the others'. One behind may be timing alone; the confidence "
     "says so.",
     "Slow input, a long host operation, or a real stop whose cause is outside this evidence.",
     "Take a second dump or stack: if the number does not move, ask what the rank's Python thread does.",
     "Not proof that it is at fault: all of its peers may be waiting for a rank that is not shown."},
    {"stuck-in-collective", "error", "All members entered the operation, sizes and types agree, and it does not end.",
     "nobody: the cause lies below the ranks' programs",
     "Enqueued on all members, completed on none or some, and nothing that differs.",
     "A device fault, a link or adapter that is down, a library fault, a network path that drops large "
     "packets.",
     "Look below: kernel log (Xid, NVLink), adapter counters and port state, NCCL's own log of the same "
     "minute. Run an all_reduce test over the same hosts, then over halves of them.",
     "Not a fault of the program, and not of the rank that printed first."},
    {"stuck-device", "error",
     "A rank enqueued the operation but its device never started it: the device is busy with other work.", "that rank",
     "With timing recorded: scheduled on this rank, started on all others.",
     "A kernel that does not end before it on the stream, a stream that waits for an event nobody records, "
     "another process on the GPU.",
     "Look at what runs on that device (nvidia-smi, cuda-gdb, a profiler's last kernel).",
     "Not a missing call: the host did its part. Without timing this cannot be told from waiting."},
    {"stuck-host", "error", "All that a rank enqueued is complete, and it enqueues nothing more.", "that rank",
     "Its last enqueued and last completed numbers are equal and below what the others wait in.",
     "The Python thread hangs or works: data loading, a lock, compilation, a file system, a debugger, a "
     "garbage collection with the GIL held.",
     "Take its stack (py-spy dump --pid); the top frame is the answer.",
     "Not the network and not the GPU: the device is idle."},
    {"init-hang", "error", "The start of a communicator did not end: some members arrived, others did not.",
     "those who did not arrive",
     "'Init START' without 'Init COMPLETE', or a store barrier whose count stays below the world size.",
     "A process that died or started late, a wrong world size, a wrong address or interface, a blocked "
     "port.",
     "See the absent members' logs first. If all arrived, test the connection to the address of rank 0.",
     "Not a slow start, if the others waited longer than a start takes."},
    {"timeout", "error", "A time-out, with no evidence of whose fault it is.", "nobody",
     "A watchdog line, but neither dumps nor other ranks' logs that tell who is missing.",
     "Any of the causes of a hang.",
     "Give ddx the flight-recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT=1) "
     "or all ranks' logs.",
     "Not a fault of the rank that printed it."},
    {"timeout-short", "warning", "A time-out shorter than a legal wait, or unlike on ranks.", "the ranks that differ",
     "The operation would have completed: the peers are seen to arrive later, or the wait holds a "
     "compilation, a checkpoint or the first step.",
     "A default of 10 or 30 minutes against a long save, evaluation or compilation on one rank; a value "
     "set on some ranks only.",
     "Raise the time-out for that group, or let the others not wait in a collective meanwhile. Set it "
     "equal on all ranks.",
     "Not a deadlock."},
    {"slow-rank", "warning", "A rank arrives last again and again: it is the one that waits least.", "that rank",
     "Between calls it takes longer than ranks that do the same, time that it waits for others left out; or "
     "of the calls that somebody is clearly late for, nearly all are late for it.",
     "Slow input, a throttled GPU, more work in its shard, a noisy neighbour on the host.",
     "Compare its compute time, clocks and temperature with a peer's; then its input pipeline.",
     "Not the ranks with the longest collectives: those wait."},
    {"slow-node", "warning", "All ranks or links of one node are slow.", "its ranks; the subject is the node",
     "The slow ranks are exactly those of one host.",
     "A link at lower speed, a missing NVLink, a CPU governor, a cooling problem.",
     "Take the node out and compare; test its links, clocks and temperatures alone.", "Not many slow ranks by chance."},
    {"desync-cascade", "info", "These other findings follow from that one.", "nobody",
     "The operations involved wait, directly or over other groups, on the cause that is named first.",
     "One cause stops one group, and the groups that share ranks with it stop one after another.",
     "Mend the first finding and look again; leave the others alone until then.", "Not a further fault."},
    {"no-desync", "info", "The ranks were compared, and they agree.", "nobody",
     "All groups' lists match over the stretch that all members still hold.",
     "A healthy job, or a dump taken while it ran.",
     "Nothing. If the job is stuck all the same, see stuck-in-collective, or the parts that are missing.",
     "Not a proof for what the evidence does not hold."},
    {"no-fault", "info", "What looks like a fault in the log is none; the finding says why.", "nobody",
     "An information line that repeats while idle, a warning that the library prints on every start, work "
     "that finishes after it.",
     "Alarming wording.", "Nothing; look for the cause elsewhere if there is a problem.",
     "Not a statement that all is well."},
    {"nan-values", "error", "A rank produced NaN or infinity, and a collective spread it.", "where it began",
     "The first line or check that reports it, by rank and step; from the next collective on it is "
     "everywhere.",
     "A learning rate too high, an overflow in half precision, a bad sample, a broken device.",
     "Replay that rank's batch alone; check the device if the batch is innocent.",
     "Not the ranks that report it after the collective."},
    {"inconclusive", "info", "Two explanations fit the evidence; the finding says both, and what would decide.",
     "nobody", "The sides are equally many, or what would tell them apart is missing.",
     "A partial set of dumps or logs, one snapshot of something that may be moving.",
     "Get what the finding asks for: usually a second snapshot or the missing ranks' dumps.", "Not a clean result."},
};

}  // namespace

ExplainSection liveness_pages() { return {"Liveness and time", kPages}; }

}  // namespace ddx::cli
