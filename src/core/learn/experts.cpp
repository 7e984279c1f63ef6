#include <cmath>

#include "learn/mixture.hpp"

namespace ftprl {
namespace {

constexpr double VARIANCE_PER_ROW = 0x1p-4;

Logarithms make_logarithms() {
    Logarithms made = {};
    for (int n = 1; n <= MOST_EXPERTS; ++n) {
        const volatile double number = n;  // a compiler may round a logarithm that it knows in another way
        made.of[n] = std::log(number);
    }
    return made;
}

}  // namespace

const Logarithms LOGARITHMS = make_logarithms();

// name, letter, prior, columns, coin, constant, drift, droppable
const NewtonKind NEWTONS[MOST_NEWTONS] = {
    {"scores", "A", 1.0, false, true, false, 0.0, false},
    {"columns", "B", 1.0, true, true, true, 0.0, true},
    {"drift", "D", 0.25, false, false, true, VARIANCE_PER_ROW, true},
};

}  // namespace ftprl
