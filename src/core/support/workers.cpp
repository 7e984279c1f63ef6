#include "support/workers.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace ftprl {
namespace {

long this_process() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(getpid());
#else
    return 0;
#endif
}

}  // namespace

Workers::Workers(int count) : process_(this_process()) {
    threads_.reserve(static_cast<std::size_t>(count));
    try {
        for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { loop(i + 1); });
    } catch (...) {
        ends_ = true;
        ++calls_;
        event_.announce();
        for (std::thread& thread : threads_) thread.join();
        throw;
    }
}

Workers::~Workers() {
    ends_ = true;
    ++calls_;
    event_.announce();
    for (std::thread& thread : threads_) thread.join();
}

bool Workers::are_here() const { return process_ == this_process(); }

void Workers::run(void (*work)(void*, int), void* context) {
    work_ = work;
    context_ = context;
    working_ = static_cast<int>(threads_.size());
    ++calls_;
    event_.announce();
    work(context, 0);
    event_.wait([this] { return working_.load() == 0; });
}

void Workers::loop(int number) {
    for (std::uint64_t call = 1;; ++call) {
        event_.wait([this, call] { return calls_.load() >= call; });
        if (ends_) return;
        work_(context_, number);
        --working_;
        event_.announce();
    }
}

}  // namespace ftprl
