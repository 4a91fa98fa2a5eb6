#![cfg(shuttle)]
use peer::Mailbox;
use shuttle::{sync::Arc, thread};

#[test]
fn a_letter_arrives() {
    shuttle::check_random(
        || {
            let mailbox = Arc::new(Mailbox::new());
            let shared = mailbox.clone();
            let sender = thread::spawn(move || shared.put(42));
            assert_eq!(mailbox.take(), 42);
            sender.join().unwrap();
        },
        10_000,
    );
}
