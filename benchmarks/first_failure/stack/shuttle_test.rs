#![cfg(shuttle)]
use peer::Stack;
use shuttle::{sync::Arc, thread};

#[test]
fn two_threads_pop_different_values() {
    shuttle::check_random(
        || {
            let stack = Arc::new(Stack::new());
            stack.push(1);
            stack.push(2);
            let shared = stack.clone();
            let other = thread::spawn(move || shared.pop().unwrap());
            let value = stack.pop().unwrap();
            assert_eq!(other.join().unwrap() + value, 3);
        },
        10_000,
    );
}
