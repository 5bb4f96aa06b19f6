#include "cli/explain_pages.h"

namespace ddx::cli {
namespace {

constexpr ExplainPage kPages[] = {
    {"evidence-missing", "info",
     "What cannot be known from here: ranks without a dump, buffers that overran, files that were cut.",
     "the ranks of whom something is missing",
     "Members of the groups or the world that no file speaks of; first sequence numbers above zero; files "
     "that end in the middle.",
     "Dumps that were not collected from all hosts, a small flight-recorder buffer, a job killed while it "
     "wrote.",
     "Collect from all hosts; TORCH_FR_BUFFER_SIZE=20000 next time.",
     "Not a fault of the job. Nothing is concluded from a hole except that there is one."},
    {"empty-trace", "error", "The input holds no operation.", "nobody", "It reads well and is empty.",
     "A recorder that was not switched on, a profile of the wrong steps.",
     "Check the recorder's settings (TORCH_FR_BUFFER_SIZE above 0).", "Not a clean run."},
    {"trace-no-rank", "error", "A trace does not say which rank it is of.", "nobody; the subject is the file",
     "Neither the content nor the name holds a rank.", "Renamed files, a tool that numbers otherwise.",
     "Keep the recorder's file names, or say where the rank is: --rank-from REGEX.", "Not a broken file."},
    {"trace-cycle", "error or warning", "Dependencies in a trace form a circle: it cannot have happened so.",
     "nobody; the subjects name the nodes", "A node depends on itself over others.",
     "A tool that linked streams wrongly, two traces merged.",
     "Record again with a current version; report it to the tool.", "Not a deadlock of the job."},
    {"trace-unknown-op", "warning", "A trace holds operations that ddx does not know; they take part in nothing.",
     "nobody", "The names are listed with their counts.", "A new or private backend.",
     "Read the findings with care where such operations are near.", "Not a fault of the job."},
    {"trace-time-skew", "warning", "Times in the traces cannot be right together.",
     "the ranks that differ, where they are few",
     "Ends before starts, or one collective that ends at times too far apart after alignment.",
     "Clocks that were set during the run, mixed units.", "Use what does not depend on time; synchronise clocks.",
     "Not a slow rank."},
    {"checker-suspect", "warning", "The message comes from a checker that is itself at fault here.", "nobody",
     "It compares what may differ, or by position what has another start; the finding says why.",
     "Known limits of that tool.", "Believe the underlying records, not the message.",
     "Not a statement that the job is healthy."},
    {"sim-stall", "error", "The virtual run stopped with ranks unfinished; the explanation holds who waits for whom.",
     "the ranks on the cycle, or those that stopped", "Replayed in order, no operation can go on.",
     "The causes of a deadlock in the program that was given.",
     "Follow the cycle in the explanation and break it at one place.",
     "Not a matter of timing: the outcome is the same for all timings."},
    {"sim-implausible", "error", "A figure that the stated hardware cannot give.", "nobody; the subjects name the rows",
     "A bandwidth above what the links can carry, a time below zero.",
     "A wrong unit, a cached result, one link counted as several.", "Check the assumption that the finding names.",
     "Not an inaccurate prediction: an impossible one."},
    {"scaling", "info", "What a table of measured runs says about scaling.", "nobody",
     "Measured time or throughput at several sizes, fitted.",
     "Every job that grows meets communication, input or a fixed part that does not shrink.",
     "Read the fitted terms: which part grows with the number of ranks.", "Not a fault."},
    {"scaling-info", "info", "What the table of runs does not settle, and which run would.", "nobody",
     "Two explanations fit the figures equally.", "Few sizes, several settings changed at once.",
     "Measure the size that the finding names.", "Not a fault."},
    {"scaling-flat", "warning", "More ranks give no more throughput.", "nobody",
     "Throughput within a few per cent over a growing number of ranks.",
     "One shared resource: storage, input, one network link, a fixed global batch.",
     "Find the resource whose use is full at all sizes.", "Not a slow rank."},
    {"scaling-negative", "warning", "More ranks give less throughput.", "nobody",
     "Throughput falls as ranks are added.",
     "Communication that grows with ranks, a network slower than the node's inside, too small a batch a "
     "rank.",
     "Compare the time in communication at the two sizes; overlap it or make it rarer.",
     "Not noise, if it is seen in repeated runs."},
};

}  // namespace

ExplainSection evidence_pages() { return {"The evidence itself, and predictions", kPages}; }

}  // namespace ddx::cli
