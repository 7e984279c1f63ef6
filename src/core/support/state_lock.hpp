// The lock of a learner's state: one thread changes it, or several read it. Waiting writers come before later readers,
// so that a stream of predictions cannot block learning. A thread may take the lock again while it holds it, as saving
// does, which reads the state part by part. A reader that wants to write is refused, because two such threads would
// wait for each other.
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
    // Takes the lock at once or not at all.
    Entry try_enter(Access access) {
        const std::lock_guard<std::mutex> guard(mutex_);
        return enter(access);
    }

    // Takes the lock, possibly waiting; false if this thread is reading and wants to write.
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

    // False if this thread does not hold the lock.
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
