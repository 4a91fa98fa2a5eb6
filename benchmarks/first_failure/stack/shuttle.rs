mod sync;

use std::ptr::null_mut;
use sync::{AtomicPtr, Ordering::*};

struct Node {
    value: u32,
    next: *mut Node,
}

pub struct Stack {
    top: AtomicPtr<Node>,
}

unsafe impl Send for Stack {}
unsafe impl Sync for Stack {}

impl Stack {
    pub fn new() -> Self {
        Stack {
            top: AtomicPtr::new(null_mut()),
        }
    }

    pub fn push(&self, value: u32) {
        let mut top = self.top.load(Relaxed);

        let node = Box::into_raw(Box::new(Node { value, next: top }));
        while let Err(now) = self.top.compare_exchange_weak(top, node, Release, Relaxed) {
            top = now;
            unsafe { (*node).next = top };
        }
    }

    pub fn pop(&self) -> Option<u32> {
        let mut node = self.top.load(Acquire);
        while !node.is_null() {
            let next = unsafe { (*node).next };
            match self.top.compare_exchange_weak(node, next, Acquire, Acquire) {
                // freed too early: another thread may be about to read its next
                Ok(_) => return Some(unsafe { Box::from_raw(node) }.value),
                Err(now) => node = now,
            }
        }
        None
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
