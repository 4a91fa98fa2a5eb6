mod sync;

use sync::{AtomicUsize, Ordering::*, UnsafeCell};

pub struct Ring<const N: usize> {
    slots: [UnsafeCell<u32>; N],
    head: AtomicUsize,
    tail: AtomicUsize,
}

unsafe impl<const N: usize> Sync for Ring<N> {}

impl<const N: usize> Ring<N> {
    pub fn new() -> Self {
        Ring {
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        }
    }

    pub fn push(&self, value: u32) -> bool {
        let at = self.tail.load(Relaxed);
        if at - self.head.load(Acquire) == N {
            return false;
        }
        self.slots[at % N].with_mut(|slot| unsafe { *slot = value });
        self.tail.store(at + 1, Relaxed); // too weak: should be Release
        true
    }

    pub fn pop(&self) -> Option<u32> {
        let at = self.head.load(Relaxed);
        if at == self.tail.load(Acquire) {
            return None;
        }
        let value = self.slots[at % N].with(|slot| unsafe { *slot });
        self.head.store(at + 1, Release);
        Some(value)
    }
}
