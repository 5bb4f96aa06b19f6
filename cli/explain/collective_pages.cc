#include "cli/explain_pages.h"

namespace ddx::cli {
namespace {

constexpr ExplainPage kPages[] = {
    {"missing-ranks", "error",
     "Some members of a group wait in a collective that others never enqueued, and those others are not "
     "known to be dead.",
     "the members that never enqueued it",
     "The waiting ranks agree on the operation and its sequence number; the named ranks' records end "
     "before it, and their buffers still hold the numbers around it.",
     "A branch that only some ranks take (rank, loss, data), a rank that ran out of data, a rank busy on "
     "the host (saving, compiling, reading), an exception that was caught and passed over.",
     "Look at the named ranks' last call site and at what their Python stacks do now (py-spy dump). Make "
     "every rank reach the same collective, or take the collective out of the branch.",
     "Not a network fault: a rank that never called cannot have lost a message. A buffer that starts "
     "later, or a dump that is not there, is no absence either; ddx does not count those."},
    {"rank-skipped", "error",
     "One side issued one operation more or fewer than the other. With that one taken out, the rest of the "
     "lists match again.",
     "the odd side; both sides when they are equally many",
     "Behind the odd operation every later one is the neighbour's, off by one: types and sizes look wrong "
     "one after another, and all become right when one entry is removed.",
     "A conditional collective (logging, gradient norm, early exit from a branch), an unused parameter's "
     "gradient that is not reduced on one rank, a retry on one rank alone.",
     "Go to the call site of the odd operation. Let all ranks call it, or none.",
     "Not a size or type mismatch: the mismatches behind it follow from this one step."},
    {"shifted", "warning",
     "A rank is off by n operations against the others over a stretch. What looks like a wrong size or "
     "type is right n steps on.",
     "the shifted ranks",
     "Compared at equal numbers the lists differ; compared n apart they agree. The operation where the "
     "shift began is no longer in the buffers.",
     "An operation skipped or repeated before the part that the recorder still holds; a counter that was "
     "not reset on all ranks after a restart.",
     "Record more (a larger flight-recorder buffer) to see where the shift began, and look for a branch "
     "there. Do not change the sizes that differ.",
     "Not many mismatches: one step went wrong earlier."},
    {"uneven-steps", "error",
     "A rank left a repeating pattern (an epoch, a decoding step, a micro-batch) earlier than the others.",
     "who left early",
     "All ranks repeat the same few operations; the named rank's list ends, or goes on to something else, "
     "at the end of a full repetition, while the others begin another one.",
     "Shards of unequal length, a last batch dropped on some ranks only, an end-of-sequence that each rank "
     "decides alone, a stop condition on a local value.",
     "Make the number of steps the same everywhere: drop or pad the last batch, join the uneven inputs "
     "(torch's Join), or agree on the stop with an all_reduce of the condition.",
     "Not a rank that hangs: it has finished its loop. Raising the time-out does not help."},
    {"rank0-only", "error", "One rank issues a collective that no other rank issues.", "that rank",
     "The others are through with what they have, or are at the next step; the named rank waits alone in "
     "an extra operation, usually from code that saves, logs or evaluates.",
     "A save, log or evaluation under 'if rank == 0' that calls a collective inside: state_dict of a "
     "sharded model, a metric's compute(), barrier().",
     "Call it on all ranks and use the result on one; or use a form that needs no collective.",
     "Not a slow disk: the rank does not wait for the file but for its peers. If the others died first, "
     "dead-rank is the finding."},
    {"mismatch-type", "error",
     "At the same sequence number of a group, ranks issue different operations, and no shift of the lists "
     "explains it.",
     "the minority; all when the sides are equal",
     "Equal numbers, different kinds (all_reduce against broadcast); removing or moving an entry does not "
     "make the lists agree.",
     "Branches on local data, different code or configuration on some ranks, two threads that use one "
     "group without an order.",
     "Compare the call sites of the two sides at this number; make one code path of them.",
     "Not rank-skipped or order-inverted: those are checked first and did not fit."},
    {"mismatch-size", "error",
     "The same operation with element counts that may not differ, or whose input and output do not fit "
     "together, even if it completed.",
     "the minority; all when the sides are equal or one rank's own counts do not fit",
     "all_reduce and broadcast need one count on all members; all_gather needs output = input x members, "
     "reduce_scatter the reverse.",
     "A last batch of another size, uneven shards, a parameter that exists on some ranks only, a padded "
     "against an unpadded tensor.",
     "Print the shape at the call site on both sides. Pad to one size, or use the form that takes a list "
     "of sizes.",
     "Not harmless when it completed: NCCL does not check, so values may be wrong and later operations may "
     "hang."},
    {"mismatch-dtype", "error", "The same operation with different datatypes.",
     "the minority; all when the sides are equal",
     "Equal kind and sequence number, another element type. ddx says when the byte counts agree: then "
     "nothing hangs and the values are garbage.",
     "Mixed precision switched on for some ranks only, a default dtype set in one place, a loss or counter "
     "that is int on one rank and float on another.",
     "Cast before the call, and set precision from one configuration that all ranks read.",
     "Not a size mismatch, even if the bytes differ: the counts are right."},
    {"mismatch-root", "error",
     "A rooted operation (broadcast, reduce, gather, scatter) with different roots on its members.",
     "the minority; all when the sides are equal",
     "Equal kind and sequence number, another root. Flight-recorder dumps do not hold the root; NCCL's "
     "call log and ops files do.",
     "A root given as global rank on one side and as rank in the group on the other; a root computed from "
     "local state.",
     "Compute the root once, from the group, in one numbering.", "Not a fault of the root rank."},
    {"mismatch-redop", "error", "The same reduction with different operators (sum, max, avg ...).",
     "the minority; all when the sides are equal",
     "Equal kind, count and type; the operator differs. Only NCCL's call log and ops files hold it.",
     "A flag that turns averaging on, read on some ranks only; two code versions.",
     "Use one operator on all ranks; compare the installed code.", "It does not hang: the result is wrong in silence."},
    {"a2a-split", "error", "In an all_to_all, what rank i sends to rank j is not what j expects from i.",
     "both ranks of each pair that disagrees",
     "The split lists of the ranks form two matrices, sent and expected; they must be transposes of each "
     "other.",
     "Expert routing counts exchanged before they were final, a stale count tensor, capacity computed on "
     "each rank alone.",
     "Exchange the counts first, in the same step, and derive both split lists from them.",
     "Not a fault of ranks outside the pair, though they wait too. Equal totals do not prove that the "
     "pairs agree."},
    {"order-inverted", "error", "Two operations of one group are swapped on some ranks.", "the minority",
     "With the two entries exchanged the lists agree; both operations are there on all ranks.",
     "Iteration over a set or dict with another order on each rank, hooks that fire as gradients become "
     "ready, two threads on one group.",
     "Issue them in a fixed order (sort the names), or from one thread.", "Not two mismatches."},
    {"order-cross-group", "error; warning when only the stream model can hit it",
     "Ranks use several groups in different orders, and so wait for each other in a circle.", "the ranks on the circle",
     "Rank a waits in group X for b, while b waits in group Y for a. No single group looks wrong. The "
     "finding prints the circle.",
     "Tensor-, pipeline- and data-parallel groups used in an order that depends on the stage; asynchronous "
     "operations of two groups started by hooks.",
     "Put the operations in one order on all ranks, or make one group's wait end before the other's start.",
     "Not a fault of any one rank: each waits rightly by its own list. A longer time-out does not help."},
    {"group-create", "error", "A group was created by some members only, or in another order on some ranks.",
     "those who differ",
     "new_group is a collective over the whole world, also for ranks that will not be members; names count "
     "up, so one call left out shifts all later names.",
     "new_group inside 'if rank in ranks', or in a loop whose order differs between ranks.",
     "Call new_group on all ranks in one order, for all groups, and keep only one's own.",
     "Not a fault of the groups' later collectives, which merely use the wrong partner."},
    {"group-disagree", "error", "One group name stands for different member lists or sizes.", "the minority",
     "The dumps' group tables disagree on members or size.",
     "Different world sizes or parallel settings on ranks, groups created in different order, dumps of two "
     "runs in one folder.",
     "Compare the launch settings of the named ranks; keep each run's dumps in a folder of its own.",
     "Not a mismatch of operations: these ranks are not in one group at all."},
    {"split-mismatch", "error", "A communicator was split with colours, keys or participants that do not fit together.",
     "the minority",
     "A split is a collective of the parent: each member must call it, and members of one colour must "
     "agree on who they are.",
     "A colour computed from a local rank instead of a global one; a rank that returns before the split.",
     "Compute colour and key from the parent's rank, and call the split on all members (with no colour "
     "where there is nothing to join).",
     "Not an init hang of the child by itself."},
    {"p2p-cycle", "error", "Sends and receives wait on each other in a circle.", "the ranks on the circle",
     "Each rank on the circle waits for a peer whose matching call stands behind that peer's own wait.",
     "All ranks send first and receive second; a pipeline schedule whose neighbours disagree on who goes "
     "first.",
     "Let even ranks send first and odd ranks receive first, or post both in one group "
     "(batch_isend_irecv).",
     "Not a lost message, and not cured by a larger buffer."},
    {"p2p-hazard", "warning",
     "It completes as recorded, but deadlocks under another model of sends or groups, which the finding "
     "names.",
     "the ranks on the hidden circle",
     "Replayed with sends that wait for their receive (instead of being buffered), or with groups that "
     "start only when all peers are ready, the program stops.",
     "Code that relies on small messages being buffered; batches whose order matters to the library.",
     "Order the calls so that they complete under every model; then message size and library version no "
     "longer matter.",
     "Not what stopped this run, if something did."},
    {"p2p-unmatched", "error", "A send without its receive, or a receive without its send.",
     "who waits, and the peer if its list shows that it never posts the other half; alone the rank whose wrong peer "
     "explains a send and a receive",
     "All calls of the pair in this direction are matched first to first; one is left over.",
     "A wrong peer number (global rank instead of rank in the group), one message more on one side, an "
     "early return of the peer.",
     "Compare the counts of sends and receives of the pair, then the peer numbers.",
     "The peer is not named where its dump is missing: nothing is known of it then."},
    {"p2p-size", "error", "A send and its receive match but differ in count or datatype.", "both",
     "The n-th send of the pair against the n-th receive of the pair.",
     "Activations of another shape at a stage border, a last micro-batch that is smaller, one message more "
     "before it (then the sizes are right one further on).",
     "Send the shape first, or fix it by configuration; check the first message of the pair that differs.",
     "Not necessarily a hang: a larger receive may complete with part of its buffer unset."},
    {"p2p-tag-order", "warning",
     "By tag the messages pair otherwise than by order, on a backend that has no tags: data is exchanged "
     "between them.",
     "the receiver",
     "NCCL matches sends and receives of a pair by order alone; the tags of the n-th send and the n-th "
     "receive differ.",
     "Code written for gloo or MPI that relies on tags.", "Post receives in the order of the sends.",
     "Nothing hangs; the values are in the wrong tensors."},
    {"peer-range", "error", "A peer or root lies outside the communicator.", "the caller",
     "The number is negative, or not below the group's size.",
     "A global rank given where a rank in the group is meant; rank + 1 at the last stage.",
     "Translate the rank (torch.distributed.get_group_rank), or wrap around at the ends.",
     "Not a fault of the rank with that number elsewhere."},
    {"buffer-reuse", "warning", "A buffer is used again while an operation on it is in flight.", "the rank",
     "Two operations overlap in time and address, or a buffer is written between an asynchronous call and "
     "its wait.",
     "A missing wait() on an async_op, a cached tensor handed back to the allocator while another stream "
     "reads it.",
     "Wait before reuse; record_stream where streams share a tensor.",
     "Not a hang by itself: the values are wrong now and then."},
    {"barrier-device", "error", "The first barrier guessed a device that is not the rank's own.",
     "the ranks on the wrong device",
     "The log says that the device used by the process is unknown, and a barrier follows on GPU 0, or on "
     "the global rank's number.",
     "No set_device and no device_id at init_process_group, while more processes than GPUs see the same "
     "device number.",
     "torch.cuda.set_device(local_rank) before init_process_group, and give it device_id.",
     "Not a network fault, though the barrier hangs as if it were one."},
};

}  // namespace

ExplainSection collective_pages() { return {"Collectives and point-to-point", kPages}; }

}  // namespace ddx::cli
