// Whether text is well-formed XML, as far as ddx writes it: elements, attributes, character data, the five entities and
// character references; no DTD, no CDATA, no processing instruction but the declaration.
#pragma once

#include <string>
#include <string_view>

namespace ddx::cli {

// Empty: well-formed; else what is wrong and where.
std::string xml_problem(std::string_view text);

}  // namespace ddx::cli
