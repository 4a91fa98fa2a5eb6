#![cfg(loom)]
use loom::{sync::Arc, thread};
use peer::Stack;

#[test]
fn two_threads_pop_different_values() {
    loom::model(|| {
        let stack = Arc::new(Stack::new());
        stack.push(1);
        stack.push(2);
        let shared = stack.clone();
        let other = thread::spawn(move || shared.pop().unwrap());
        let value = stack.pop().unwrap();
        assert_eq!(other.join().unwrap() + value, 3);
    });
}
