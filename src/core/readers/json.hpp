// JSON, one object a line: a walk that checks the text and hands each value to whoever reads it.
//
// The reader has a type `Scope`, which stands for a value and its name, and these members; those that return a bool
// return false to stop, having recorded why:
//
//   const ExpectedKey* expected(Scope object)         the key that is probably next, or null
//   Scope enter_expected(Scope object)                it is
//   Scope enter(Scope object, Field key)              another key
//   bool skips(Scope)                                 whether its value does not matter
//   bool number(Scope, Field text, position)             the values; `position` is that in an array, or NOT_IN_ARRAY
//   bool text(Scope, Field, position)
//   bool boolean(Scope, bool, position)
//   bool open_object(Scope&, position), bool close_object(Scope)     the scope may become another one inside
//   bool open_array(Scope&, position), bool close_array(Scope)
//   void count_missing(Scope, position)                  null
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "readers/labels.hpp"
#include "readers/names.hpp"
#include "readers/scan.hpp"
#include "readers/split.hpp"
#include "readers/utf8.hpp"

namespace ftprl {

inline constexpr std::ptrdiff_t NOT_IN_ARRAY = -1;

// True if a byte may be part of a number.
inline bool is_of_number(Byte byte) noexcept {
    return (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == '+' || byte == 'e' || byte == 'E';
}

// A key as it is written in the text, with its closing quote; empty for a key that needs escapes.
class ExpectedKey {
public:
    ExpectedKey() = default;
    explicit ExpectedKey(const std::string& key) {
        for (const char c : key) {
            if (c == '"' || c == '\\') return;
        }
        text_ = key + '"';
        size_ = text_.size();
        text_.resize(size_ + 8);  // so that eight bytes can be read
    }

    // The number of bytes at p that spell this key; 0 if they do not. Bytes up to `limit` may be read.
    std::size_t at(const Byte* p, const Byte* end, const Byte* limit) const noexcept {
        const auto* const own = reinterpret_cast<const Byte*>(text_.data());
        if (static_cast<std::size_t>(end - p) < size_) return 0;
        if (size_ <= 8 && limit - p >= 8) {
            return ((detail::load8(p) ^ detail::load8(own)) & detail::LOW_BYTES[size_]) == 0 ? size_ : 0;
        }
        return std::memcmp(p, own, size_) == 0 ? size_ : 0;
    }

private:
    std::string text_ = std::string(8, '\0');
    std::size_t size_ = 0;
};

template <class Reader>
class JsonWalk {
public:
    using Scope = typename Reader::Scope;
    static constexpr int DEEPEST = 64;

    explicit JsonWalk(Reader& reader) : reader_(reader) {}

    // Reads the object in [p, end); bytes up to `limit` may be read. False if it is bad, with `fault` set, or if the
    // reader stopped, with an empty `fault`.
    bool operator()(const Byte* p, const Byte* end, const Byte* limit, Scope scope) {
        p_ = p;
        end_ = end;
        limit_ = limit;
        fault.clear();
        has_high_bytes_ = !is_ascii(p, end);
        if (p_ == end_ || *p_ != '{') return expected("a JSON object");
        ++p_;
        if (!object(scope, 1)) return false;
        blanks();
        return p_ == end_ || expected("one JSON object a line");
    }

    std::string fault;

private:
    bool expected(const char* what) {
        fault = std::string("expected ") + what + ", got " + (p_ == end_ ? "the end of the line" : quoted(p_, end_));
        return false;
    }

    void blanks() {
        while (p_ != end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) ++p_;
    }

    bool is_next(Byte byte) {
        blanks();
        if (p_ == end_ || *p_ != byte) return false;
        ++p_;
        return true;
    }

    // Behind the brace.
    bool object(Scope scope, int depth) {
        if (is_next('}')) return true;
        do {
            if (!is_next('"')) return expected("a name in quotes");
            Scope inner{};
            const ExpectedKey* const next = reader_.expected(scope);
            const std::size_t size = next == nullptr ? 0 : next->at(p_, end_, limit_);
            if (size != 0) {
                p_ += size;
                inner = reader_.enter_expected(scope);
            } else {
                Field key{};
                if (!string(key, keys_)) return false;
                inner = reader_.enter(scope, key);
            }
            if (!is_next(':')) return expected("':' after a name");
            blanks();
            if (reader_.skips(inner) ? !skip(depth) : !value(inner, NOT_IN_ARRAY, depth)) return false;
        } while (is_next(','));
        return is_next('}') || expected("',' or '}'");
    }

    // Behind the bracket.
    bool array(Scope scope, int depth) {
        if (is_next(']')) return true;
        std::ptrdiff_t position = 0;
        do {
            blanks();
            if (!value(scope, position++, depth)) return false;
        } while (is_next(','));
        return is_next(']') || expected("',' or ']'");
    }

    bool value(Scope scope, std::ptrdiff_t position, int depth) {
        if (p_ == end_) return expected("a value");
        switch (*p_) {
            case '"': {
                Field field{};
                ++p_;
                return string(field, texts_) && reader_.text(scope, field, position);
            }
            case '{':
                if (depth == DEEPEST) return expected("objects and arrays at most 64 deep");
                ++p_;
                return reader_.open_object(scope, position) && object(scope, depth + 1) && reader_.close_object(scope);
            case '[':
                if (depth == DEEPEST) return expected("objects and arrays at most 64 deep");
                ++p_;
                return reader_.open_array(scope, position) && array(scope, depth + 1) && reader_.close_array(scope);
            case 't':
                return word("true") && reader_.boolean(scope, true, position);
            case 'f':
                return word("false") && reader_.boolean(scope, false, position);
            case 'n':
                if (!word("null")) return false;
                reader_.count_missing(scope, position);
                return true;
            case 'N':  // as Python writes it
                if (!word("NaN")) return false;
                reader_.count_missing(scope, position);
                return true;
            default:
                return number(scope, position);
        }
    }

    bool word(const char* text) {
        const std::size_t size = std::strlen(text);
        if (static_cast<std::size_t>(end_ - p_) < size || std::memcmp(p_, text, size) != 0) return expected("a value");
        p_ += size;
        return true;
    }

    bool number(Scope scope, std::ptrdiff_t position) {
        const Byte* const first = p_;
        if (*p_ != '-' && (*p_ < '0' || *p_ > '9')) return expected("a value");
        while (p_ != end_ && is_of_number(*p_)) ++p_;
        return reader_.number(scope, Field{first, p_, limit_}, position);
    }

    // Unescapes a string into `scratch`.
    bool string(Field& out, std::string& scratch) {
        const Byte* const first = p_;
        const Byte* const stop = end_of_text(first);
        if (stop >= end_) return unclosed();
        out = Field{first, stop, limit_};
        p_ = stop + 1;
        if (*stop == '\\') {
            p_ = stop;
            if (!unescape(first, scratch)) return false;
            const auto* const text = reinterpret_cast<const Byte*>(scratch.data());
            out = Field{text, text + scratch.size(), text + scratch.size()};
        }
        if ((!has_high_bytes_ && *stop != '\\') || is_utf8(out.data, out.end)) return true;
        p_ = first;
        return expected("text in UTF-8");
    }

    // The first quote or backslash at or after p; most texts are short.
    const Byte* end_of_text(const Byte* p) const {
#if defined(FTPRL_SSE2) && defined(__GNUC__)
        if (limit_ - p >= 16) {
            const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
            const __m128i stops =
                _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('"')), _mm_cmpeq_epi8(text, _mm_set1_epi8('\\')));
            const auto match = static_cast<unsigned>(_mm_movemask_epi8(stops));
            if (match != 0) return p + __builtin_ctz(match);
            p += 16;
        }
#endif
        return quote_(p, limit_);
    }

    bool unclosed() {
        p_ = end_;
        return expected("'\"' at the end of a text");
    }

    // Reads from the first backslash, at p_, to behind the closing quote.
    bool unescape(const Byte* first, std::string& scratch) {
        scratch.assign(first, p_);
        for (;;) {
            const Byte* const stop = quote_(p_, limit_);
            if (stop >= end_) return unclosed();
            scratch.append(p_, stop);
            p_ = stop + 1;
            if (*stop == '"') return true;
            if (p_ == end_) return unclosed();
            if (!escape(*p_++, scratch)) return false;
        }
    }

    bool escape(Byte byte, std::string& scratch) {
        static constexpr const char* KNOWN = "\"\\/bfnrt";
        static constexpr const char* MEANT = "\"\\/\b\f\n\r\t";
        const char* const known = byte == 0 ? nullptr : std::strchr(KNOWN, byte);
        if (known != nullptr) {
            scratch.push_back(MEANT[known - KNOWN]);
            return true;
        }
        std::uint32_t code = 0, low = 0;
        if (byte != 'u' || !hex(code)) return --p_, expected("an escape that JSON has");
        if (code >= 0xd800 && code < 0xdc00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
            p_ += 2;
            if (!hex(low)) return expected("an escape that JSON has");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            if (low < 0xdc00 || low > 0xdfff) code = 0xd800;  // half of a character, which is none in UTF-8
        }
        detail::encode(code, scratch);
        return true;
    }

    bool hex(std::uint32_t& code) {
        if (end_ - p_ < 4) return false;
        for (int i = 0; i < 4; ++i, ++p_) {
            const Byte c = *p_;
            const std::uint32_t digit = c >= '0' && c <= '9'   ? c - std::uint32_t{'0'}
                                        : c >= 'a' && c <= 'f' ? c - std::uint32_t{'a'} + 10
                                        : c >= 'A' && c <= 'F' ? c - std::uint32_t{'A'} + 10
                                                               : 16u;
            if (digit == 16) return false;
            code = 16 * code + digit;
        }
        return true;
    }

    // Skips a value: its brackets must match, and its texts must end.
    bool skip(int depth) {
        const int outside = depth;
        if (p_ == end_ || *p_ == ',' || *p_ == '}') return expected("a value");
        for (; p_ != end_; ++p_) {
            const Byte byte = *p_;
            if (byte == '"') {
                if (!skip_string()) return false;
            } else if (byte == '{' || byte == '[') {
                if (++depth > DEEPEST) return expected("objects and arrays at most 64 deep");
            } else if (byte == ',' || byte == '}' || byte == ']') {
                if (depth == outside) return true;
                depth -= byte == ',' ? 0 : 1;
            }
        }
        return true;  // whoever expects a comma or a brace finds the end of the line
    }

    // Skips a text from its opening quote to the closing one.
    bool skip_string() {
        for (++p_;; p_ += 2) {
            p_ = quote_(p_, limit_);
            if (p_ >= end_) return unclosed();
            if (*p_ == '"') return true;
            if (end_ - p_ < 2) return unclosed();
        }
    }

    Reader& reader_;
    const Byte* p_ = nullptr;
    const Byte* end_ = nullptr;
    const Byte* limit_ = nullptr;
    bool has_high_bytes_ = false;
    Finder<2> quote_{{'"', '\\'}};
    std::string keys_, texts_;  // with escapes
};

}  // namespace ftprl
