#[cfg(shuttle)]
pub use shuttle::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicUsize, Ordering};
