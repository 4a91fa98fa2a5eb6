#![cfg(loom)]
use loom::{sync::Arc, thread};
use peer::Mailbox;

#[test]
fn a_letter_arrives() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let shared = mailbox.clone();
        let sender = thread::spawn(move || shared.put(42));
        assert_eq!(mailbox.take(), 42);
        sender.join().unwrap();
    });
}
