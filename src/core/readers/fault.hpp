// What is wrong with a row.
#pragma once

#include <string>

namespace ftprl {

// The message says what was expected and what is there instead. Where an option helps, `remedy` says what to do with
// it, as in "raise" and "max_row": callers spell the option as their users type it.
struct Fault {
    std::string message;
    const char* remedy = "";
    const char* option = "";
};

}  // namespace ftprl
