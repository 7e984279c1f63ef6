// Numbers, labels, hashes and words: each is compared with a slow version of itself that is written here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engine.hpp"
#include "readers/labels.hpp"
#include "readers/names.hpp"
#include "readers/number.hpp"
#include "readers/rows.hpp"
#include "readers/words.hpp"

namespace fuzz {
namespace {

using namespace ftprl;

std::string lowered(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return text;
}

// ---- numbers: a grammar for what is one, strtod for which one it is ----

std::size_t digits(const std::string& text, std::size_t& at) {
    const std::size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - from;
}

bool is_decimal(const std::string& text) {
    std::size_t at = 0;
    std::size_t count = digits(text, at);
    if (at < text.size() && text[at] == '.') count += digits(text, ++at);
    if (count == 0) return false;
    if (at == text.size()) return true;
    if (text[at] != 'e' && text[at] != 'E') return false;
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    return digits(text, at) > 0 && at == text.size();
}

bool is_special(const std::string& text) {
    const std::string lower = lowered(text);
    if (lower == "inf" || lower == "infinity" || lower == "nan") return true;
    if (lower.size() < 5 || lower.compare(0, 4, "nan(") != 0 || lower.back() != ')') return false;
    for (std::size_t i = 4; i + 1 < lower.size(); ++i) {
        const char c = lower[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
    }
    return true;
}

Parsed expected_number(const std::string& text, double& out) {
    const bool is_signed = !text.empty() && (text[0] == '-' || text[0] == '+');
    const std::string unsigned_text = text.substr(is_signed ? 1 : 0);
    if (is_special(unsigned_text)) return Parsed::not_finite;
    if (!is_decimal(unsigned_text)) return Parsed::malformed;
    out = std::strtod(text.c_str(), nullptr);
    return std::isfinite(out) ? Parsed::ok : Parsed::not_finite;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void check_number(const std::string& text) {
    double expected = 0.25, actual = 0.25;
    const Parsed rule = expected_number(text, expected);
    const Exact bytes(text);
    law(parse_number(bytes.data(), bytes.end(), actual) == rule, "a number is one when the grammar says so");
    law(same_bits(actual, rule == Parsed::ok ? expected : 0.25),
        "a number is what strtod says; another leaves the result alone");
}

void run_number(const std::string& body, Random random) {
    check_number(body);
    if (random.one_in(4)) {  // any double in any number of digits
        const std::uint64_t bits = random.next();
        double value = 0.0;
        std::memcpy(&value, &bits, sizeof value);
        char text[64];
        std::snprintf(text, sizeof text, random.one_in(2) ? "%.*e" : "%.*g", static_cast<int>(random.below(25)), value);
        check_number(text);
    }
}

// ---- labels ----

void run_label(const std::string& body, Random random) {
    constexpr const char* positives[] = {"1", "-0", "yes", "", "1e400", "2.50", "nan"};
    const std::size_t rule = random.below(4);
    const std::string positive = random.pick(positives);
    const bool numbers_only = random.one_in(2);
    Labels labels;
    labels.numbers_only = numbers_only;
    if (rule == 0) labels.kind = Labels::Kind::sign;
    if (rule == 1) labels.kind = Labels::Kind::words;
    if (rule == 1) labels.words = {{"yes", 1.0}, {"no", -1.0}};
    if (rule == 2) labels.set_positive(positive);
    double low = 1.0;  // what -1 was called, in the twin
    for (std::size_t from = 0; from <= body.size();) {
        const std::size_t stop = std::min(body.size(), body.find(' ', from));
        const std::string text = body.substr(from, stop - from);
        from = stop + 1;
        double number = 0.0, target = 0.0, y = 0.25, expected = 0.25;
        const Parsed parsed = expected_number(text, number);
        bool good = parsed == Parsed::ok;
        if (text.empty()) {
            good = true;
            expected = MISSING;
        } else if (rule == 0) {
            if (good && low == 1.0 && (number == 0.0 || number == -1.0)) low = number;
            good = good && (number == 1.0 || number == low);
            expected = number == 1.0 ? 1.0 : -1.0;
        } else if (rule == 1) {
            good = lowered(text) == "yes" || lowered(text) == "no";
            expected = lowered(text) == "yes" ? 1.0 : -1.0;
        } else if (rule == 2) {
            const bool equal = good && expected_number(positive, target) == Parsed::ok && number == target;
            good = good || !numbers_only;
            expected = equal || text == positive ? 1.0 : -1.0;
        } else {
            expected = number;
        }
        Fault fault;
        const Exact bytes(text);
        law(labels.read(bytes.data(), bytes.end(), y, fault) == good, "a label is taken when its rule says so");
        law(!good || same_bits(y, expected), "a label becomes what its rule says");
        law(good == fault.message.empty() && fault.message.size() < 200, "a refusal has a short reason");
    }
}

// ---- hashes: the rule at the top of hash.hpp, letter by letter ----

std::uint64_t slow_hash(const std::string& text, std::uint64_t seed) {
    std::uint64_t h = detail::mix(seed + detail::K0);
    for (std::size_t from = 0; from < text.size(); from += 8) {
        std::uint64_t w = 0;
        for (std::size_t i = 0; i < 8 && from + i < text.size(); ++i) {
            w += static_cast<std::uint64_t>(static_cast<unsigned char>(text[from + i])) << (8 * i);
        }
        h = detail::fold_portable(h ^ w, detail::K1);
    }
    return detail::mix(h ^ text.size());
}

void run_hash(const std::string& body, Random random) {
    const std::uint64_t seed = random.one_in(2) ? 0 : random.next();
    const std::uint64_t start = hash_start(seed);
    const std::uint64_t expected = slow_hash(body, seed);
    const Exact bytes(body);
    law(hash_bytes(bytes.data(), bytes.size(), seed) == expected, "the hash is its rule");
    // A name inside a longer text: what follows it must not count.
    const std::size_t from = random.below(body.size() + 1);
    const std::size_t size = random.below(body.size() - from + 1);
    law(hash_name(start, bytes.data() + from, size, bytes.end()) == slow_hash(body.substr(from, size), seed),
        "a name is hashed alone");
    const Prefix prefix(start, body.substr(0, from));
    law(prefix(bytes.data() + from, bytes.size() - from, bytes.end()) == expected,
        "a beginning and its rest are the whole");
    law(prefix(bytes.data() + from, size, bytes.end()) == slow_hash(body.substr(0, from + size), seed),
        "what follows the rest does not count");
    constexpr std::uint64_t dims[] = {2, 3, 97, 1u << 22, (std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 32};
    const Slots slots(random.pick(dims), random.one_in(2));
    law(slots(expected) < slots.feature_cells(), "a hash lands in a cell that is open to features");
}

// ---- words ----

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    const Exact bytes(text);
    Words()(bytes.data(), bytes.end(), [&](const Byte* p, const Byte* end) { words.emplace_back(p, end); });
    return words;
}

void run_words(const std::string& body, Random random) {
    const std::vector<std::string> words = words_of(body);
    law(words.size() <= body.size() / 2 + 1, "there is room for all words of a text");
    for (const std::string& word : words) {
        const std::vector<std::string> again = words_of(word);
        law(again.size() == 1 && again[0] == word, "a word is one word, in lower case");
    }
    // Cut at a byte that is no part of a word, a text is its two parts.
    const std::size_t at = random.below(body.size() + 1);
    std::vector<std::string> parts = words_of(body.substr(0, at));
    for (const std::string& word : words_of(body.substr(at))) parts.push_back(word);
    law(words_of(body.substr(0, at) + " " + body.substr(at)) == parts, "a blank separates words");
}

// ---- the canary: proof that what the sanitizers and the laws would catch is caught ----

void run_canary(const std::string& body, Random) {
    const Exact bytes(body);
    volatile unsigned char sink = 0;
    if (body == "read") sink = bytes.data()[bytes.size()];
    volatile int large = 0x7fffffff;
    if (body == "overflow") large = large + 1;
    if (body == "leak") sink = *new volatile unsigned char[8]();
    if (body == "throw") throw std::bad_alloc();
    law(body != "law", "a law that does not hold");
    while (body == "hang") sink = sink + 1;
}

}  // namespace

Target number_target() {
    return {"number",
            run_number,
            {"0",
             "1",
             "9",
             "5",
             ".",
             "-",
             "+",
             "e",
             "E",
             "e-",
             "e+30",
             "e-32",
             "000000000000000000",
             "999999999999999999",
             "1e308",
             "17976931348623157",
             "4.9e-324",
             "2.2250738585072011e-308",
             "9007199254740993",
             "inf",
             "nan",
             "nan(1)",
             "INFINITY",
             "0x",
             "_",
             " "}};
}
Target label_target() {
    return {
        "label", run_label, {"1", "0", "-1", "+1", "1.0", "-0", " ", "2.5", "yes", "No", "YES", "nan", "1e400", "x"}};
}
Target hash_target() {
    return {"hash", run_hash, {"a", "=", "column=", "1234567", "12345678", std::string(1, '\0'), "\xff"}};
}
Target words_target() {
    return {
        "words",
        run_words,
        {"a", "B", "_", "9", " ", "\xc3\x89", "\xc8\xba", "\xe2\x84\xaa", "\xc4\xb0", "\xce\xa3", "\xf0\x90\x90\x80",
         "\xf4\x8f\xbf\xbf", "\xed\xa0\x80", "\xc0\x80", "\xf0\x80", "\xe2\x82", "\xff", "\xe1\xba\x9e"}};
}
Target canary_target() { return {"canary", run_canary, {"a"}}; }

}  // namespace fuzz
