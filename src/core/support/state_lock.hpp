// The lock of a learner's state: one thread changes it, or several read it. Whoever waits to change it comes before
// those who come to read it later, so that a stream of predictions cannot keep learning from going on.
//
// A thread may take it again while it has it, as saving does, which reads the state part by part; to change the state
// while only reading it is refused, since two threads that try would wait for each other.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace ftprl {

enum class Access { read, change };
enum class Entry { entered, occupied, refused };

class StateLock {
public:
    // At once or not at all.
    Entry try_enter(Access access) {
        const std::lock_guard<std::mutex> guard(mutex_);
        return enter(access);
    }

    // May wait; false when the thread reads and wants to change.
    bool wait_and_enter(Access access) {
        std::unique_lock<std::mutex> guard(mutex_);
        Entry entry = enter(access);
        if (access == Access::change) ++waiting_;
        while (entry == Entry::occupied) {
            left_.wait(guard);
            entry = enter(access);
        }
        if (access == Access::change) --waiting_;
        return entry == Entry::entered;
    }

    // False when this thread has not entered.
    bool leave() {
        const std::lock_guard<std::mutex> guard(mutex_);
        const std::thread::id self = std::this_thread::get_id();
        if (writer_ == self) {
            if (--depth_ > 0) return true;
            writer_ = {};
        } else {
            const auto own = std::find(readers_.begin(), readers_.end(), self);
            if (own == readers_.end()) return false;
            readers_.erase(own);
            if (!readers_.empty()) return true;
        }
        left_.notify_all();
        return true;
    }

private:
    Entry enter(Access access) {
        const std::thread::id self = std::this_thread::get_id();
        if (writer_ == self) {
            ++depth_;
            return Entry::entered;
        }
        const bool reads = std::find(readers_.begin(), readers_.end(), self) != readers_.end();
        if (access == Access::read) {
            if (!reads && (writer_ != std::thread::id{} || waiting_ > 0)) return Entry::occupied;
            readers_.push_back(self);
            return Entry::entered;
        }
        if (reads) return Entry::refused;
        if (writer_ != std::thread::id{} || !readers_.empty()) return Entry::occupied;
        writer_ = self;
        depth_ = 1;
        return Entry::entered;
    }

    std::mutex mutex_;
    std::condition_variable left_;
    std::thread::id writer_;
    int depth_ = 0;                         // how often the writer has entered
    int waiting_ = 0;                       // who want to change the state
    std::vector<std::thread::id> readers_;  // one entry for each time a thread has entered
};

}  // namespace ftprl
