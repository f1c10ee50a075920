//! A memory limit for one query. The engine limits the rows that it keeps; this
//! limits everything that the query's thread allocates, such as the list of
//! int_range(1, 10000000000). An allocation over the limit fails, which unwinds
//! the query by a panic instead of ending the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

const UNLIMITED: usize = usize::MAX;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(UNLIMITED) };
    static EXCEEDED: Cell<bool> = const { Cell::new(false) };
}

struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// limit sets the memory that this thread may allocate from now on.
pub fn limit(bytes: usize) {
    std::alloc::set_alloc_error_hook(|layout| panic!("an allocation of {} bytes failed", layout.size()));
    EXCEEDED.set(false);
    LEFT.set(bytes);
}

/// exceeded ends the limit and reports whether an allocation was refused.
pub fn exceeded() -> bool {
    LEFT.set(UNLIMITED);
    EXCEEDED.get()
}

/// charge reports whether the thread may allocate. After a refusal the limit is
/// off: unwinding allocates too.
fn charge(bytes: usize) -> bool {
    let left = LEFT.get();
    if left == UNLIMITED {
        return true;
    }
    if bytes > left {
        LEFT.set(UNLIMITED);
        EXCEEDED.set(true);
        return false;
    }
    LEFT.set(left - bytes);
    true
}

fn refund(bytes: usize) {
    let left = LEFT.get();
    if left != UNLIMITED {
        LEFT.set(left.saturating_add(bytes).min(UNLIMITED - 1));
    }
}

unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !charge(layout.size()) {
            return std::ptr::null_mut();
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !charge(layout.size()) {
            return std::ptr::null_mut();
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        refund(layout.size());
        unsafe { System.dealloc(data, layout) }
    }

    unsafe fn realloc(&self, data: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && !charge(size - layout.size()) {
            return std::ptr::null_mut();
        }
        let moved = unsafe { System.realloc(data, layout, size) };
        if size < layout.size() {
            refund(layout.size() - size);
        }
        moved
    }
}
