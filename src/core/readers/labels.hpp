// The conversion of labels: a number unchanged, +1 and -1 for a loss with two classes, or with several classes a number
// unchanged and a code for any other text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "readers/fault.hpp"
#include "readers/number.hpp"
#include "readers/scan.hpp"
#include "support/hash.hpp"

namespace ftprl {

inline constexpr double MISSING = std::numeric_limits<double>::quiet_NaN();

// At most 40 bytes of the text, in quotes, so that a message stays on one line.
inline std::string quoted(const Byte* p, const Byte* end) {
    const bool cut = end - p > 40;
    return "'" + std::string(p, cut ? p + 37 : end) + (cut ? "...'" : "'");
}

class Labels {
public:
    enum class Kind {
        number,   // any finite number, as it stands
        sign,     // 1 is +1; -1 or 0 is -1, but not both in one run
        equal,    // `positive` is +1, anything else -1
        words,    // the words given, whatever their case
        classes,  // any number, as it stands, or any text, as a code
    };

    Kind kind = Kind::number;
    bool numbers_only = false;  // a format whose labels are numbers: other text is a broken row, not a class
    std::vector<std::pair<std::string, double>> words;  // in lower case

    void set_positive(std::string text) {
        kind = Kind::equal;
        positive_ = std::move(text);
        const auto* p = reinterpret_cast<const Byte*>(positive_.data());
        if (parse_number(p, p + positive_.size(), target_) != Parsed::ok) target_ = MISSING;
    }

    // The negative label under `sign`: 0 or -1 once it is known, 1 before.
    double negative() const noexcept { return negative_; }
    void set_negative(double y) noexcept { negative_ = y; }

    // Reads the label in [p, end), of at least one byte, if it is one of the frequent ones: 1, then -1 or 0. No number
    // is parsed.
    bool usual(const Byte* p, const Byte* end, double& y) const noexcept {
        if (kind == Kind::classes && end - p == 1 && *p >= '0' && *p <= '9') {
            y = *p - '0';
            return true;
        }
        if (kind != Kind::sign && kind != Kind::number) return false;
        const bool one = end[-1] == '1';
        if (end - p == 1 && (one || (*p == '0' && kind == Kind::sign && negative_ == 0.0))) {
            y = one ? 1.0 : -1.0;
            return true;
        }
        if (end - p != 2 || p[0] != '-' || !one || (kind == Kind::sign && negative_ != -1.0)) return false;
        y = -1.0;
        return true;
    }

    // Reads the label in [p, end), without surrounding blanks; NaN if there is none. False, with the reason, for an
    // unexpected label.
    bool read(const Byte* p, const Byte* end, double& y, Fault& fault) {
        if (p == end) {
            y = MISSING;
            return true;
        }
        if (usual(p, end, y)) return true;
        if (kind == Kind::classes) return name(p, end, y, fault);
        if (kind == Kind::words) return word(p, end, y, fault);
        double number = 0.0;
        const Parsed parsed = parse_number(p, end, number);
        if (kind == Kind::equal && !(numbers_only && parsed != Parsed::ok)) {
            const bool same = (parsed == Parsed::ok && number == target_) || positive_ == std::string(p, end);
            y = same ? 1.0 : -1.0;
            return true;
        }
        if (parsed == Parsed::malformed) return refuse("expected a number as the label", p, end, fault);
        if (parsed == Parsed::not_finite) return refuse("expected a finite number as the label", p, end, fault);
        y = number;
        return kind == Kind::number || sign(p, end, y, fault);
    }

    // The texts behind class codes since the last call.
    std::vector<std::pair<double, std::string>> take_texts() {
        std::vector<std::pair<double, std::string>> texts(texts_.begin(), texts_.end());
        texts_.clear();
        return texts;
    }
    // No numeric label is as large as a code.
    static bool is_code(double y) noexcept { return y >= FIRST_CODE; }

private:
    static constexpr double FIRST_CODE = 0x1p1000;
    static constexpr std::ptrdiff_t LONGEST_NAME = 1000;

    static bool refuse(const char* rule, const Byte* p, const Byte* end, Fault& fault) {
        fault = Fault{std::string(rule) + ", got " + quoted(p, end)};
        return false;
    }

    bool sign(const Byte* p, const Byte* end, double& y, Fault& fault) {
        if (y == 1.0) return true;
        const bool first = (y == 0.0 || y == -1.0) && negative_ == 1.0;
        if (first) negative_ = y;
        if (y != negative_) {
            const char* rule = negative_ == 1.0   ? "expected the label 1, -1 or 0"
                               : negative_ == 0.0 ? "expected the label 1 or 0, as in the rows before"
                                                  : "expected the label 1 or -1, as in the rows before";
            refuse(rule, p, end, fault);
            fault.remedy = "pass loss=softmax for several classes, or name the label that counts as 1 with";
            fault.option = "positive";
            return false;
        }
        y = -1.0;
        return true;
    }

    // A class: a number, or text, which becomes a code of 52 bits of its hash.
    bool name(const Byte* p, const Byte* end, double& y, Fault& fault) {
        if (parse_number(p, end, y) == Parsed::ok) return true;
        if (end - p > LONGEST_NAME) return refuse("expected a class with a name of at most 1000 bytes", p, end, fault);
        std::string text(p, end);
        const std::uint64_t hash = hash_bytes(p, static_cast<std::size_t>(end - p), 0);
        y = FIRST_CODE * (1.0 + static_cast<double>(hash >> 12) * 0x1p-52);
        const auto match = texts_.emplace(y, text);
        if (match.second || match.first->second == text) return true;
        return refuse("expected classes whose names differ in their hash", p, end, fault);
    }

    bool word(const Byte* p, const Byte* end, double& y, Fault& fault) const {
        std::string lower(p, end);
        for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        for (const auto& [text, value] : words) {
            if (lower == text) {
                y = value;
                return true;
            }
        }
        std::string rule = "expected the label";
        for (std::size_t i = 0; i < words.size(); ++i) rule += (i == 0 ? " '" : " or '") + words[i].first + "'";
        return refuse(rule.c_str(), p, end, fault);
    }

    std::string positive_;
    double target_ = MISSING;
    double negative_ = 1.0;
    std::map<double, std::string> texts_;  // of codes
};

}  // namespace ftprl
