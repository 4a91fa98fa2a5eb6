mod sync;

use sync::{Condvar, Mutex};

pub struct Mailbox {
    letter: Mutex<Option<u32>>,
    arrived: Condvar,
}

impl Mailbox {
    pub fn new() -> Self {
        Mailbox {
            letter: Mutex::new(None),
            arrived: Condvar::new(),
        }
    }

    fn full(&self) -> bool {
        self.letter.lock().unwrap().is_some()
    }

    pub fn put(&self, value: u32) {
        let mut letter = self.letter.lock().unwrap();
        *letter = Some(value);
        self.arrived.notify_one();
    }

    pub fn take(&self) -> u32 {
        let wait = !self.full(); // released here: the letter may arrive before the wait
        let mut letter = self.letter.lock().unwrap();
        if wait {
            letter = self.arrived.wait(letter).unwrap();
        }
        letter.take().unwrap()
    }
}
