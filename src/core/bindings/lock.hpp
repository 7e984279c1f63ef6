// What a `with` of Python takes of a learner's lock and gives back.
#pragma once

#include <memory>

#include "support/state_lock.hpp"

namespace ftprl::bindings {

struct Hold {
    std::shared_ptr<StateLock> lock;
    Access access;

    // May wait, and lets other threads of Python run meanwhile.
    void enter() const;
    void leave() const;
};

}  // namespace ftprl::bindings
