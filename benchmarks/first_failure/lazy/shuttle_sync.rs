#[cfg(shuttle)]
pub use shuttle::sync::{
    atomic::{AtomicBool, Ordering},
    Mutex,
};
#[cfg(not(shuttle))]
pub use std::sync::{
    atomic::{AtomicBool, Ordering},
    Mutex,
};
