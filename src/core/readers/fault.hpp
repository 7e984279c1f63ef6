// The fault of a row: why it cannot be read.
#pragma once

#include <string>

namespace ftprl {

// The message states what was expected and what was found. If an option helps, `remedy` names its value, as in "raise"
// or "max_row"; callers spell the option as their users type it.
struct Fault {
    std::string message;
    const char* remedy = "";
    const char* option = "";
};

}  // namespace ftprl
