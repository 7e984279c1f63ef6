// Values of Python as those of a record: numbers, texts, dates, lists, and dicts where the model has a column.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "readers/records.hpp"

namespace ftprl::bindings {

inline constexpr int MOST_DICTS = 64;  // within each other, as in JSON lines
inline constexpr const char* TOO_DEEP = "expected at most 64 dicts within each other, got more";

std::string text_of_key(nanobind::handle key);
std::string class_of(nanobind::handle value);

// A value of a record; what is no value of one is refused. `key` is its name as the dict has it.
void add_value(RecordParser& parser, const RecordParser::Name& name, nanobind::handle key, nanobind::handle value);

// A list where the model has columns within this name: the values of these, and the other elements in their places.
struct SplitList {
    std::vector<std::pair<std::string, nanobind::object>> columns;
    nanobind::list others;
    bool has_others = false;
};

bool is_list_of_columns(const RecordParser& parser, const std::string& path, nanobind::handle value);
// The same whatever the path: a quick answer for most values.
bool may_be_list_of_columns(const RecordParser& parser, nanobind::handle value);
// False when it is refused.
bool split_list(RecordParser& parser, const std::string& path, nanobind::handle list, SplitList& split);

}  // namespace ftprl::bindings
