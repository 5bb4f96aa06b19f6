// Whether text is well-formed XML, as far as ddx writes it: elements, attributes, character data, the five entities and
// character references; no DTD, no CDATA, no processing instruction but the declaration.
#pragma once

#include <string>
#include <string_view>

namespace ddx::cli {

// Empty: well-formed; else what is wrong and where.
std::string xml_problem(std::string_view text);

// The first line of `text` that a runner of CI takes for a command; empty where there is none.
std::string workflow_command(const std::string& text);

}  // namespace ddx::cli
