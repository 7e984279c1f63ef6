// The base of all text formats: rows are read from blocks of bytes until a batch is full or a row is bad.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "readers/delimiter_index.hpp"
#include "readers/fault.hpp"
#include "readers/labels.hpp"
#include "readers/rows.hpp"
#include "readers/scan.hpp"

namespace ftprl {

struct Options {
    std::uint64_t dim = 0;
    std::uint64_t seed = 0;
    bool intercept = true;
    bool wide = false;        // float64 values, else float32
    bool skip = false;        // leave bad rows out, else stop at the first
    std::size_t max_row = 0;  // bytes of the longest row
    std::size_t batch_rows = 0;
    std::size_t batch_values = 0;
    bool names = false;      // keep the names of features
    bool all_names = false;  // and miss none of them
    Interactions interactions;
    Grams grams;
    bool namespaces = false;  // columns and keys are named as features of VW text: "user^age" is age in namespace user
    std::set<std::string> known_namespaces;  // others are refused, unless there is none
};

// Where and why reading stopped; line 0 means that it did not.
struct Problem {
    std::int64_t line = 0;
    Fault fault;
};

class Parser {
public:
    // `index` holds the bytes that end a token.
    Parser(const Options& options, Labels labels, DelimiterIndex index)
        : rows(Slots(options.dim, options.intercept), options.wide),
          labels_(std::move(labels)),
          options_(options),
          index_(std::move(index)) {
        if (options.names) rows.log.keep_names(options.all_names, rows.slots());
        rows.log.set_interactions(options.interactions, options.namespaces);
        rows.log.set_grams(options.grams, hash_start(options.seed));
    }
    Parser(const Parser&) = delete;
    Parser& operator=(const Parser&) = delete;
    virtual ~Parser() = default;

    // Reads whole rows from data[from, size) and returns where it stopped: at the end of the last whole row, behind
    // the row that filled the batch, or behind a bad row (see `problem`). `last` says that nothing follows the data.
    std::size_t feed(const Byte* data, std::size_t size, std::size_t from, bool last) {
        const Byte* p = data + from;
        const Byte* end = data + size;
        index_.forget();
        while (p != end && !full() && problem.line == 0) {
            const std::int64_t before = records();
            const Byte* next = row(p, end, last);
            if (next == nullptr) break;
            if (keeps_records && records() != before) keep_record(p, next);
            p = next;
        }
        return static_cast<std::size_t>(p - data);
    }

    bool full() noexcept { return rows.count() >= options_.batch_rows || rows.indices.size() >= options_.batch_values; }

    // The state of labels that all rows of a run share: see Labels.
    double negative() const noexcept { return labels_.negative(); }
    void set_negative(double y) noexcept { labels_.set_negative(y); }

    // The texts of labels that became codes since the last call.
    std::vector<std::pair<double, std::string>> take_label_texts() { return labels_.take_texts(); }

    RowBuilder rows;
    std::int64_t line = 1;      // of the next row
    std::int64_t row_line = 0;  // where the last row that was read begins
    std::int64_t bad = 0;
    Problem problem;
    Problem first_bad;  // of those left out
    bool keeps_records = false;

    // The positions of skipped rows since the last call, as the number of rows of the current batch before each.
    std::vector<std::int64_t> take_left_out() noexcept { return std::exchange(left_out_, {}); }
    // The text of every row since the last call, read or skipped, if it is kept; without line ends.
    std::vector<std::string> take_records() noexcept { return std::exchange(records_, {}); }

protected:
    // Reads the row at p and returns the start of the next one; null if the row is incomplete.
    virtual const Byte* row(const Byte* p, const Byte* end, bool last) = 0;

    // Handles a bad row: reading stops, or the row is skipped.
    void refuse(Fault fault) {
        if (!options_.skip) {
            problem = Problem{line, std::move(fault)};
            return;
        }
        left_out_.push_back(static_cast<std::int64_t>(rows.count()));
        if (bad++ == 0) first_bad = Problem{line, std::move(fault)};
    }
    void refuse(std::string message) { refuse(Fault{std::move(message)}); }

    // Stops for good, because the start of the next row is unknown.
    void give_up(Fault fault) { problem = Problem{line, std::move(fault)}; }

    void finish(double y, double weight) {
        row_line = line;
        if (std::fabs(y) > LARGEST && !Labels::is_code(y))
            return refuse("expected a label within 1e30, got one beyond it; rescale the labels");
        if (weight > LARGEST) return refuse("expected a weight within 1e30, got one beyond it; rescale the weights");
        if (!rows.add_grams()) {
            return refuse("expected at most " + std::to_string(Grams::MOST) +
                          " n-grams in a row, got more; ask for shorter ones");
        }
        if (!rows.add_products()) {
            return refuse("expected at most " + std::to_string(Interactions::MOST_PRODUCTS) +
                          " interactions in a row, got more; name fewer columns in interactions");
        }
        if (!rows.finish(y, weight)) refuse("expected values within 1e30, got one beyond it; rescale the feature");
    }

    Fault too_long() const {
        const std::string most = std::to_string(options_.max_row);
        return Fault{"expected a row of at most " + most + " bytes, got a longer one", "raise", "max_row"};
    }

    Labels labels_;
    Options options_;
    DelimiterIndex index_;

private:
    // The number of rows read so far, good or bad; a line without any character is neither.
    std::int64_t records() const noexcept { return static_cast<std::int64_t>(rows.count()) + bad; }

    void keep_record(const Byte* p, const Byte* next) {
        while (next != p && (next[-1] == '\n' || next[-1] == '\r')) --next;
        records_.emplace_back(p, next);
    }

    std::vector<std::int64_t> left_out_;
    std::vector<std::string> records_;
};

// A format with one row per line.
template <class Base>
class ByLine : public Base {
public:
    using Base::Base;

protected:
    // The row in [p, eol), which is not empty. The bytes up to `end` may be looked at.
    virtual void parse(const Byte* p, const Byte* eol, const Byte* end) = 0;

    const Byte* row(const Byte* p, const Byte* end, bool last) final {
        const Byte* newline = find(p, end, '\n');
        if (newline == end && !last) return nullptr;
        const Byte* next = newline == end ? end : newline + 1;
        const Byte* eol = newline;
        while (eol != p && (is_blank(eol[-1]) || eol[-1] == '\r')) --eol;
        if (static_cast<std::size_t>(newline - p) > this->options_.max_row) {
            this->give_up(this->too_long());
        } else {
            p = skip_blanks(p, eol);
            if (p != eol) parse(p, eol, end);
        }
        if (this->problem.line == 0) ++this->line;
        return next;
    }
};

using LineParser = ByLine<Parser>;

}  // namespace ftprl
