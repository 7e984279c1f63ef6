// Threads that wait for work, and how threads that work on one thing wait for each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ftprl {

// Tell the processor that a thread only waits.
inline void pause_briefly() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    asm volatile("yield");
#endif
}

// Where threads wait for a change that others make to atomic variables and then announce. What is waited for is mostly
// done within some microseconds, so a thread first looks again and again; then it leaves the processor to others.
class Event {
public:
    template <class Ready>
    void wait(const Ready& ready) {
        for (int i = 0; i < SPINS; ++i) {
            if (ready()) return;
            pause_briefly();
        }
        std::unique_lock<std::mutex> guard(mutex_);
        ++waiting_;
        while (!ready()) changed_.wait(guard);
        --waiting_;
    }

    // After a change that was stored with the order of std::memory_order_seq_cst, as `waiting_` is read: either this
    // sees who waits, or they see the change.
    void announce() {
        if (waiting_.load() == 0) return;
        {
            const std::lock_guard<std::mutex> guard(mutex_);
        }
        changed_.notify_all();
    }

private:
    static constexpr int SPINS = 1000;

    std::atomic<int> waiting_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

// A fixed number of threads besides the caller's, which take part whenever it has work for all of them.
class Workers {
public:
    // May throw std::system_error when the system has no more threads.
    explicit Workers(int count);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // `work(context, number)` on every thread, of which the caller's is number 0; returns when all are done. The work
    // must not throw.
    void run(void (*work)(void*, int), void* context);
    // Whether the threads are still there: a forked process has only the one that forked it. Nothing can be done with
    // workers that are gone, not even to destroy them.
    bool are_here() const;
    struct End {
        void operator()(Workers* workers) const {
            if (workers->are_here()) delete workers;
        }
    };

private:
    void loop(int number);

    std::vector<std::thread> threads_;
    void (*work_)(void*, int) = nullptr;
    void* context_ = nullptr;
    alignas(64) std::atomic<std::uint64_t> calls_{0};  // of `run`; the last one ends the threads
    alignas(64) std::atomic<int> working_{0};
    std::atomic<bool> ends_{false};
    Event event_;
    long process_;
};

}  // namespace ftprl
