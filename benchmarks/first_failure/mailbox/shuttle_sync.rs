#[cfg(shuttle)]
pub use shuttle::sync::{Condvar, Mutex};
#[cfg(not(shuttle))]
pub use std::sync::{Condvar, Mutex};
