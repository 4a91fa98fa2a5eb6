mod sync;

use std::cell::UnsafeCell;
use sync::{AtomicBool, Mutex, Ordering::*};

pub struct Lazy {
    ready: AtomicBool,
    mutex: Mutex<()>,
    value: UnsafeCell<u32>,
}

unsafe impl Sync for Lazy {}

impl Lazy {
    pub fn new() -> Self {
        Lazy {
            ready: AtomicBool::new(false),
            mutex: Mutex::new(()),
            value: UnsafeCell::new(0),
        }
    }

    pub fn get(&self, make: impl FnOnce() -> u32) -> u32 {
        // too weak: should be Acquire
        if !self.ready.load(Relaxed) {
            let _lock = self.mutex.lock().unwrap();
            if !self.ready.load(Relaxed) {
                unsafe { *self.value.get() = make() };
                self.ready.store(true, Release);
            }
        }
        unsafe { *self.value.get() }
    }
}
