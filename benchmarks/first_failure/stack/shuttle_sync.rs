#[cfg(shuttle)]
pub use shuttle::sync::atomic::{AtomicPtr, Ordering};
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicPtr, Ordering};
