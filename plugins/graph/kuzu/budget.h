// A bound for what the engine allocates while it plans a query of a workflow. It
// evaluates constant expressions then, outside of its buffers: range(1, 1e9)
// would take all memory, and no interruption would be noticed.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace tea {

// Budget bounds the allocations of its thread.
class Budget {
public:
    Budget(size_t bytes, const std::atomic<bool>& canceled) : left{static_cast<int64_t>(bytes)}, canceled{canceled} { current = this; }
    ~Budget() { current = nullptr; }
    Budget(const Budget&) = delete;

    // taken throws if the bytes of p exceed the budget or the query was canceled.
    // The engine interrupts a query too, when it fails on one of its threads: the
    // message of that failure needs memory.
    static void taken(void* p) {
        if (current == nullptr) {
            return;
        }
        current->left -= static_cast<int64_t>(malloc_usable_size(p));
        if (current->left < 0 || current->canceled) {
            current->left += static_cast<int64_t>(malloc_usable_size(p));
            free(p);
            current = nullptr; // what unwinds can allocate again
            throw std::bad_alloc();
        }
    }

    static void given(void* p) {
        if (current != nullptr) {
            current->left += static_cast<int64_t>(malloc_usable_size(p));
        }
    }

private:
    static inline thread_local Budget* current = nullptr;
    int64_t left;
    const std::atomic<bool>& canceled;
};

} // namespace tea

// The engine's calls of new and delete are resolved to these.
void* operator new(std::size_t size) {
    auto p = malloc(size == 0 ? 1 : size);
    if (p == nullptr) {
        throw std::bad_alloc();
    }
    tea::Budget::taken(p);
    return p;
}

void operator delete(void* p) noexcept {
    tea::Budget::given(p);
    free(p);
}

void operator delete(void* p, std::size_t) noexcept {
    operator delete(p);
}
