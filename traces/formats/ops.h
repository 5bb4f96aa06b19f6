// The ops notation: what every rank does, as text that people write (docs/ops-notation.md).
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "traces/formats/importer.h"
#include "traces/model/trace.h"

namespace ddx::formats {

Importer ops_importer();

// Reads `text` as the only input of an Evidence; errors name `path`. Throws Error.
Evidence read_ops(std::string_view text, const std::string& path = "ops.txt", const ImportOptions& options = {});

// Writes `trace` so that reading it again gives the same programs, groups and bindings. What the notation cannot say
// (a second record of a rank, a record without a rank) is left out with a comment that says so.
void write_ops(const Trace& trace, std::ostream& out);

}  // namespace ddx::formats
