// The file that --output names.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "traces/model/evidence.h"

namespace ddx::cli {

// Throws UsageError where `output` is one of `paths` (as given), or a file of `inputs` that was read as evidence: the
// user has it but once. What ddx knows nothing of, such as an older report beside the evidence, may be replaced.
void refuse_evidence(const std::string& output, const std::vector<std::string>& paths,
                     const std::vector<Input>& inputs);

// Gives `path` what `write` puts into the stream: all of it or nothing, where that is a regular file or none yet.
// Throws UsageError where it cannot be written.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace ddx::cli
