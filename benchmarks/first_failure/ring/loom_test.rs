#![cfg(loom)]
use loom::{sync::Arc, thread};
use peer::Ring;

#[test]
fn values_arrive_in_order() {
    loom::model(|| {
        let ring = Arc::new(Ring::<2>::new());
        let pushed = ring.clone();
        let producer = thread::spawn(move || {
            for i in 1..=2 {
                while !pushed.push(i) {
                    thread::yield_now();
                }
            }
        });
        for i in 1..=2 {
            let value = loop {
                match ring.pop() {
                    Some(value) => break value,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(value, i);
        }
        producer.join().unwrap();
    });
}
