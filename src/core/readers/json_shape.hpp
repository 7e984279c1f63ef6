// The bytes between the values of an object. Most rows of a file have equal ones, and then only the values are parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "readers/joined_features.hpp"
#include "readers/json.hpp"
#include "readers/names.hpp"
#include "readers/scan.hpp"
#include "readers/split.hpp"
#include "readers/utf8.hpp"
#include "support/dispatch.hpp"

namespace ftprl {

// The result of reading a row by its shape: read, refused, or of another shape.
enum class ShapeRead : std::uint8_t { whole, refused, other };

template <class Node>
class JsonShape {
public:
    // The bytes before a value, from the end of the previous one, and the key of the value; null after the last.
    struct Step {
        Node* node;
        std::string before;
        // If a text of the key can only be a category: the beginning of the names, and their group.
        const Prefix* beginning = nullptr;
        std::uint32_t group = 0;

        // True if the bytes match at p. Bytes up to `limit` may be read.
        bool is_at(const Byte* p, const Byte* end, const Byte* limit) const noexcept {
            const std::size_t size = before.size();
            if (static_cast<std::size_t>(end - p) < size) return false;
#if defined(FTPRL_SSE2)
            if (size <= 16 && limit - p >= 16) {
                const __m128i own = _mm_loadu_si128(reinterpret_cast<const __m128i*>(word_));
                const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
                const auto same = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(own, text)));
                return (same & mask_) == mask_;
            }
#else
            (void)limit;
#endif
            return std::memcmp(p, before.data(), size) == 0;
        }

        // True if the bytes match at p, for p at most at the end of the line with 16 readable bytes: the bytes contain
        // a quote or a brace, so they cannot match beyond the line.
        FTPRL_INSIDE bool is_inside(const Byte* p, const Byte* end, const Byte* limit) const noexcept {
#if defined(FTPRL_SSE2)
            if (mask_ != 0) {
                const __m128i own = _mm_loadu_si128(reinterpret_cast<const __m128i*>(word_));
                const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
                const auto same = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(own, text)));
                return (same & mask_) == mask_;
            }
#endif
            return is_at(p, end, limit);
        }

        // Returns the text after the quote at p - 1, up to its closing quote; false if it has escapes, is not closed
        // before `end`, or is not UTF-8. Bytes up to `limit` may be read. The next step starts where the closing quote
        // is found, and waiting for that makes each step slow. So the text is assumed to be as long as in the previous
        // row, and the processor continues speculatively; if the lengths differ, the assumption is dropped.
        FTPRL_INSIDE bool text_at(const Byte* p, const Byte* end, const Byte* limit, Field& out) noexcept {
            if (limit - p < 16) return long_text_at(p, end, limit, out);
            return text_inside(p, end, limit, out);
        }
        // Returns the text if 16 bytes may be read in any case.
        FTPRL_INSIDE bool text_inside(const Byte* p, const Byte* end, const Byte* limit, Field& out) noexcept {
#if defined(FTPRL_SSE2)
            const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
            const __m128i stops =
                _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
            const auto match = static_cast<unsigned>(_mm_movemask_epi8(stops));
            if (match == 0) return long_text_at(p, end, limit, out);
            const unsigned size = detail::lowest_bit(match);
            const Byte* stop = p + size;
            if (trust_ >= 0) {
                const Byte* const guess = p + unrelated(size_);
                if (size == size_) {
                    stop = guess;
                } else {
                    size_ = size;
                    trust_ = -DOUBT;
                }
            } else if (size == size_) {
                ++trust_;
            } else {
                size_ = size;
                trust_ = -DOUBT;
            }
            const auto high = static_cast<unsigned>(_mm_movemask_epi8(text));
            out = Field{p, stop, limit};
            const bool is_plain = (high & ((1u << size) - 1)) == 0;
            return stop < end && *stop == '"' && (is_plain || is_utf8(p, stop));
#else
            return long_text_at(p, end, limit, out);
#endif
        }

        Step(Node* key, std::string text) : node(key), before(std::move(text)) {
            if (before.size() > 16) return;
            std::memcpy(word_, before.data(), before.size());
            mask_ = (1u << before.size()) - 1;
        }

    private:
        static constexpr int DOUBT = 16;  // texts of one length before the next is taken to have it, too

        // A number that the compiler cannot see through, so that it does not replace the guess by the result.
        static unsigned unrelated(unsigned number) noexcept {
#if defined(__GNUC__)
            __asm__("" : "+r"(number));
#endif
            return number;
        }

        static bool long_text_at(const Byte* p, const Byte* end, const Byte* limit, Field& out) noexcept {
            const Byte* stop = p;
            while (stop < end && *stop != '"' && *stop != '\\') ++stop;
            out = Field{p, stop, limit};
            return stop < end && *stop == '"' && is_utf8(p, stop);
        }

        Byte word_[16] = {};
        unsigned mask_ = 0;
        unsigned size_ = 0;  // of the last text of up to 16 bytes
        int trust_ = 0;      // in its size, if not below 0
    };

    bool is_known() const noexcept { return !steps_.empty(); }
    void forget() noexcept { steps_.clear(); }
    std::vector<Step>& steps() noexcept { return steps_; }

    // Learns the shape of [p, end), a valid object with `count` keys, including those of nested objects. False, with
    // nothing learned, if a value is an array.
    bool learn(const Byte* p, const Byte* end, Node* const* keys, std::size_t count) {
        steps_.clear();
        std::size_t key = 0;
        const Byte* from = p;
        while (p != end) {
            if (*p != '"') {
                ++p;
                continue;
            }
            p = behind_text(p, end);
            while (p != end && (*p == ':' || is_blank(*p) || *p == '\r')) ++p;
            if (p == end || *p == '[' || key == count) break;
            Node* const node = keys[key++];
            if (*p == '{') continue;
            steps_.emplace_back(node, std::string(from, p));
            if (*p == '"') {
                p = behind_text(p, end);
            } else {
                while (p != end && *p != ',' && *p != '}' && !is_blank(*p) && *p != '\r') ++p;
            }
            from = p;
        }
        if (p != end || key != count || steps_.empty()) {
            steps_.clear();
            return false;
        }
        steps_.emplace_back(nullptr, std::string(from, end));
        return true;
    }

    // Reads a row that has these bytes between its values. The reader has, beside `skips`, `text`, `number`, `boolean`
    // and `count_missing` of a walk (see json.hpp), these members:
    //
    //   Scope scope_of(Node&)                what a walk would pass for the values of a key
    //   bool joins(const Step&, Field text)  adds a text to the joined features, or returns false if it is none of them
    //   bool may_add(Scope)                  whether features may follow, before which those that wait are added
    template <class Reader>
    ShapeRead read(const Byte* p, const Byte* eol, const Byte* end, Reader& reader, JoinedFeatures& joined) {
        joined.begin(steps_.size(), eol, end);
        const bool is_inside = end - eol > 16;  // 16 bytes behind any byte of the line may be read
        // True if the value counts; then the collected features are added before its own.
        const auto counts = [&](auto scope) {
            if (reader.skips(scope)) return false;
            if (reader.may_add(scope)) joined.flush();
            return true;
        };
        for (Step& step : steps_) {
            if (is_inside ? !step.is_inside(p, eol, end) : !step.is_at(p, eol, end)) return ShapeRead::other;
            p += step.before.size();
            if (step.beginning != nullptr && is_inside && *p == '"') {  // most are such texts: nothing else is tested
                Field text{};
                if (!step.text_inside(p + 1, eol, end, text)) return ShapeRead::other;
                if (reader.joins(step, text)) {
                    p = text.end + 1;
                    continue;
                }
            }
            if (step.node == nullptr) break;
            if (p == eol) return ShapeRead::other;
            const auto scope = reader.scope_of(*step.node);
            bool is_good = true;
            if (*p == '"') {
                Field text{};
                if (!step.text_at(p + 1, eol, end, text)) return ShapeRead::other;
                p = text.end + 1;
                if (reader.joins(step, text)) continue;
                is_good = !counts(scope) || reader.text(scope, text, NOT_IN_ARRAY);
            } else if (*p == '-' || (*p >= '0' && *p <= '9')) {
                const Byte* const first = p;
                while (p != eol && is_of_number(*p)) ++p;
                is_good = !counts(scope) || reader.number(scope, Field{first, p, end}, NOT_IN_ARRAY);
            } else if (is_word(p, eol, "null")) {
                p += 4;
                if (counts(scope)) reader.count_missing(scope, NOT_IN_ARRAY);
            } else if (is_word(p, eol, "true") || is_word(p, eol, "false")) {
                const bool value = *p == 't';
                p += value ? 4 : 5;
                is_good = !counts(scope) || reader.boolean(scope, value, NOT_IN_ARRAY);
            } else {
                return ShapeRead::other;
            }
            if (!is_good) return ShapeRead::refused;
        }
        if (p != eol) return ShapeRead::other;
        joined.finish();
        return ShapeRead::whole;
    }

private:
    static bool is_word(const Byte* p, const Byte* end, const char* word) noexcept {
        const std::size_t size = std::strlen(word);
        return static_cast<std::size_t>(end - p) >= size && std::memcmp(p, word, size) == 0;
    }

    // Skips a text from its opening quote to behind the closing one.
    static const Byte* behind_text(const Byte* p, const Byte* end) noexcept {
        for (++p; p != end && *p != '"'; ++p) {
            if (*p == '\\' && end - p > 1) ++p;
        }
        return p == end ? end : p + 1;
    }

    std::vector<Step> steps_;
};

}  // namespace ftprl
