#![cfg(loom)]
use loom::{sync::Arc, thread};
use peer::Lazy;

#[test]
fn both_threads_get_the_value() {
    loom::model(|| {
        let answer = Arc::new(Lazy::new());
        let shared = answer.clone();
        let other = thread::spawn(move || assert_eq!(shared.get(|| 42), 42));
        assert_eq!(answer.get(|| 42), 42);
        other.join().unwrap();
    });
}
