// One row at a time: a dict of Python's is read, predicted and learned where it is, without an array.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/lock.hpp"
#include "bindings/records.hpp"
#include "readers/bound_table.hpp"
#include "readers/name_table.hpp"
#include "support/slot_index.hpp"

namespace nb = nanobind;

namespace {

using ftprl::bindings::DictParser;
using ftprl::bindings::Hold;
using ftprl::bindings::OneRowView;

// What is left to Python after a row was learned, or why it was not: bits of the result of `learn`.
enum Due { REVIEW_DUE = 1, NAMES_FULL = 2, BOUNDS_EMPTY = 4, BOUNDS_MANY = 8, PRODUCT_NAMES_FULL = 16 };

// Its parsers have space for one row: who reads a dict, which may run code of Python's, has both until the row is done.
class OneRow {
public:
    OneRow(nb::handle learner, nb::handle baseline, DictParser& learning, DictParser& scoring, const Hold& reading,
           const Hold& changing, ftprl::NameTable* names, ftprl::BoundTable* bounds, const ftprl::SlotIndex* index)
        : learner_(ftprl::bindings::learner_of(learner)),
          baseline_(ftprl::bindings::baseline_of(baseline)),
          learning_(learning),
          scoring_(scoring),
          reading_(reading),
          changing_(changing),
          names_(names),
          bounds_(bounds),
          index_(index) {}

    double review_row = 0.0;  // number of labelled rows after which scales may be dropped
    std::int64_t rows = 0;    // that were passed to learn

    int learn(nb::handle x, double y, double weight) {
        if (index_ != nullptr) throw nb::value_error("a compact model cannot learn");
        const Turn turn(*this);
        const OneRowView row = read(learning_, x);
        learning_.rows.y.data()[0] = y;
        learning_.rows.weight.data()[0] = weight;
        const Entered entered(changing_);
        const int full = meet_names(row);
        if (refused_ != 0) return refused_;
        const double learned = ftprl::bindings::learn_row(learner_, baseline_, row);
        ++rows;
        return (learned >= review_row ? REVIEW_DUE : 0) | full;
    }

    double score(nb::handle x) {
        const Turn turn(*this);
        const OneRowView row = read(scoring_, x);
        if (index_ != nullptr) {  // in the parser's own memory, which belongs to this row
            std::uint32_t* const slots = scoring_.rows.indices.data();
            for (std::int64_t i = 0; i < row.indptr[1]; ++i) slots[i] = (*index_)[slots[i]];
        }
        const Entered entered(reading_);
        return ftprl::bindings::score_row(learner_, row);
    }

    std::vector<double> score_classes(nb::handle x) {
        const Turn turn(*this);
        const OneRowView row = read(scoring_, x);
        const Entered entered(reading_);
        return ftprl::bindings::score_classes(learner_, row);
    }

private:
    struct Turn {
        explicit Turn(OneRow& row) : row_(row) {
            const std::thread::id self = std::this_thread::get_id();
            if (row.owner_ == self) {
                PyErr_SetString(PyExc_RuntimeError, "a row cannot be learned or predicted while another one is read");
                throw nb::python_error();
            }
            while (row.owner_ != std::thread::id{}) {  // which the lock of the interpreter guards
                const nb::gil_scoped_release free;
                std::this_thread::yield();
            }
            row.owner_ = self;
        }
        ~Turn() {
            row_.learning_.rows.forget();
            row_.scoring_.rows.forget();
            row_.owner_ = std::thread::id{};
        }
        OneRow& row_;
    };
    struct Entered {
        explicit Entered(const Hold& hold) : hold_(hold) { hold.enter(); }
        ~Entered() { hold_.lock->leave(); }
        const Hold& hold_;
    };

    // The only row of a parser.
    static OneRowView read(DictParser& parser, nb::handle x) {
        parser.problem = ftprl::Problem{};
        parser.add_dict(0, x);
        if (parser.problem.line != 0) throw nb::value_error(parser.problem.fault.message.c_str());
        ftprl::RowBuilder& rows = parser.rows;
        rows.write_unit_values();
        const void* const values = rows.wide() ? static_cast<const void*>(rows.wide_values.data())
                                               : static_cast<const void*>(rows.narrow_values.data());
        return {rows.indptr.data(), rows.indices.data(), values, rows.wide(), rows.y.data(), rows.weight.data()};
    }

    // Before a row is learned: the names that are new in it, and the bounds of their weights.
    int meet_names(const OneRowView& row) {
        ftprl::FeatureLog& log = learning_.rows.log;
        if ((names_ == nullptr && bounds_ == nullptr) || !log.has_new()) return 0;
        ftprl::bindings::check_row(learner_, row);  // a row that is refused leaves no name behind
        ftprl::NewNames fresh = log.take();
        if (bounds_ != nullptr && refused_ == 0) bound(fresh);
        if (names_ == nullptr || refused_ != 0 || names_->is_full()) return 0;
        const ftprl::NameTable::FullRows full = names_->add(fresh, 0, 1);
        if (full.product != 1) fresh.stop_products();
        return (full.any == 1 ? 0 : NAMES_FULL) | (full.product == 1 ? 0 : PRODUCT_NAMES_FULL);
    }

    // A name without any weight left for it stops all learning: it would not be met as a new one again.
    void bound(const ftprl::NewNames& fresh) {
        if (!bounds_->add(fresh, 0, 1)) {
            refused_ = BOUNDS_EMPTY;
            return;
        }
        std::vector<std::uint32_t> slots;
        std::vector<double> ends;
        for (const auto& change : bounds_->changes) {
            slots.push_back(change.slot);
            ends.insert(ends.end(), {change.ends.lower, change.ends.upper});
        }
        if (!slots.empty() && !ftprl::bindings::bound_cells(learner_, slots.data(), slots.size(), ends.data()))
            refused_ = BOUNDS_MANY;
    }

    ftprl::Learner& learner_;
    ftprl::Baseline& baseline_;
    DictParser& learning_;
    DictParser& scoring_;
    Hold reading_, changing_;
    ftprl::NameTable* names_;
    ftprl::BoundTable* bounds_;
    const ftprl::SlotIndex* index_;  // of the cells of a compact model
    int refused_ = 0;                // why no row is learned any more
    std::thread::id owner_;          // who has the parsers
};

}  // namespace

void ftprl::bindings::bind_one_row(nb::module_& m) {
    nb::class_<OneRow>(m, "OneRow", "A learner that is given one dict at a time.")
        .def(nb::init<nb::handle, nb::handle, DictParser&, DictParser&, const Hold&, const Hold&, ftprl::NameTable*,
                      ftprl::BoundTable*, const ftprl::SlotIndex*>(),
             nb::arg("learner"), nb::arg("baseline"), nb::arg("learning"), nb::arg("scoring"), nb::arg("reading"),
             nb::arg("changing"), nb::arg("names").none(), nb::arg("bounds").none(), nb::arg("index").none(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
             nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>())
        .def(
            "learn", &OneRow::learn, nb::arg("x"), nb::arg("y"), nb::arg("weight") = 1.0,
            "Predict and learn a row; 1 is added to the result when scales may be dropped, 2 when no name fits any "
            "more, 16 when none of an interaction does. 4 and 8: nothing was learned, since the bounds of a name leave "
            "no weight, or too many differ.")
        .def("score", &OneRow::score, nb::arg("x"), "The score of a row, with the weights as they are.")
        .def("score_classes", &OneRow::score_classes, nb::arg("x"), "The same with several classes: one for each.")
        .def_rw("review_row", &OneRow::review_row, "After so many labelled rows scales may be dropped.")
        .def_ro("rows", &OneRow::rows, "How many rows were learned here.");
}
