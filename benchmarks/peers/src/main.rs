//! The benchmark programs of the engine, under Shuttle and under loom.
//!
//! `peers TOOL PROGRAM EXECUTIONS` prints how many executions were made and the seconds of
//! processor time. Shuttle samples at random; loom searches, and ends when no execution is left.

use std::sync::atomic::{AtomicU64, Ordering};

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Time) -> i32;
}

fn processor_seconds() -> f64 {
    const PROCESS: i32 = 2;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(PROCESS, &mut time) };
    time.seconds as f64 + time.nanoseconds as f64 / 1e9
}

macro_rules! programs {
    ($name:ident, $tool:ident) => {
        mod $name {
            use std::cell::UnsafeCell;
            use std::sync::Arc;
            use $tool::sync::atomic::{fence, AtomicUsize, Ordering::*};
            use $tool::thread;

            fn run<S: Send + Sync + 'static>(threads: usize, state: S, body: fn(&S, usize)) -> Arc<S> {
                let state = Arc::new(state);
                let handles: Vec<_> = (0..threads)
                    .map(|t| {
                        let state = state.clone();
                        thread::spawn(move || body(&state, t))
                    })
                    .collect();
                for handle in handles {
                    handle.join().unwrap();
                }
                state
            }

            fn cells<const N: usize>() -> [AtomicUsize; N] {
                std::array::from_fn(|_| AtomicUsize::new(0))
            }

            pub fn store_load() {
                run(2, cells::<2>(), |x, t| {
                    x[t].store(1, SeqCst);
                    x[1 - t].load(SeqCst);
                });
            }

            pub fn seqlock() {
                run(3, cells::<3>(), |x, t| {
                    let [sequence, a, b] = x;
                    for i in 0..3 {
                        if t == 0 {
                            let n = sequence.load(Relaxed);
                            sequence.store(n + 1, Relaxed);
                            fence(Release);
                            a.store(i + 1, Relaxed);
                            b.store(i + 1, Relaxed);
                            sequence.store(n + 2, Release);
                        } else {
                            let before = sequence.load(Acquire);
                            let (first, second) = (a.load(Relaxed), b.load(Relaxed));
                            fence(Acquire);
                            if before & 1 == 0 && sequence.load(Relaxed) == before {
                                assert_eq!(first, second, "a reader saw half of a write");
                            }
                        }
                    }
                });
            }

            struct Stack {
                top: AtomicUsize,
                next: [UnsafeCell<usize>; 7],
            }
            unsafe impl Sync for Stack {}

            pub fn treiber() {
                let stack = Stack {
                    top: AtomicUsize::new(0),
                    next: std::array::from_fn(|_| UnsafeCell::new(0)),
                };
                let stack = run(3, stack, |s, t| {
                    for i in 0..2 {
                        let node = 1 + 2 * t + i;
                        let mut seen = s.top.load(Relaxed);
                        loop {
                            unsafe { *s.next[node].get() = seen };
                            match s.top.compare_exchange_weak(seen, node, Release, Relaxed) {
                                Ok(_) => break,
                                Err(now) => seen = now,
                            }
                        }
                    }
                    for _ in 0..2 {
                        let mut seen = s.top.load(Acquire);
                        while seen != 0 {
                            let next = unsafe { *s.next[seen].get() };
                            match s.top.compare_exchange_weak(seen, next, AcqRel, Acquire) {
                                Ok(_) => break,
                                Err(now) => seen = now,
                            }
                        }
                    }
                });
                assert_eq!(stack.top.load(SeqCst), 0, "a node is left");
            }

            fn operations(count: usize) {
                let body: fn(&(usize, [AtomicUsize; 4]), usize) = |(count, x), t| {
                    for i in 0..count / 2 {
                        x[i % 4].store(t, Release);
                        x[(i + 1) % 4].load(Acquire);
                    }
                };
                run(2, (count, cells::<4>()), body);
            }

            pub fn increments() {
                run(4, cells::<1>(), |x, _| {
                    x[0].fetch_add(1, Relaxed);
                });
            }

            pub fn exchanges() {
                run(4, cells::<1>(), |x, t| {
                    let _ = x[0].compare_exchange(t, t + 1, Relaxed, Relaxed);
                });
            }

            pub fn readers() {
                run(3, cells::<1>(), |x, t| {
                    if t == 0 {
                        x[0].store(1, Relaxed);
                    } else {
                        x[0].load(Relaxed);
                    }
                });
            }

            pub fn seqlock_once() {
                run(2, cells::<3>(), |x, t| {
                    let [sequence, a, b] = x;
                    if t == 0 {
                        sequence.store(1, Relaxed);
                        fence(Release);
                        a.store(1, Relaxed);
                        b.store(1, Relaxed);
                        sequence.store(2, Release);
                    } else if sequence.load(Acquire) & 1 == 0 {
                        a.load(Relaxed);
                        b.load(Relaxed);
                        fence(Acquire);
                        sequence.load(Relaxed);
                    }
                });
            }

            pub fn named(name: &str) -> fn() {
                match name {
                    "store_load" => store_load,
                    "seqlock" => seqlock,
                    "treiber" => treiber,
                    "increments_4" => increments,
                    "exchanges_4" => exchanges,
                    "readers_2" => readers,
                    "seqlock_once" => seqlock_once,
                    "operations_100" => || operations(100),
                    "operations_1000" => || operations(1000),
                    _ => panic!("there is no program {name:?}"),
                }
            }
        }
    };
}

programs!(under_shuttle, shuttle);
programs!(under_loom, loom);

fn counted(program: fn()) -> impl Fn() + Send + Sync + 'static {
    move || {
        EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        program()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, tool, program, executions] = &arguments[..] else {
        panic!("usage: peers TOOL PROGRAM EXECUTIONS");
    };
    let executions: usize = executions.parse().expect("EXECUTIONS is a number");
    let started = processor_seconds();
    match tool.as_str() {
        "shuttle" => {
            let program = counted(under_shuttle::named(program));
            shuttle::check_random_with_seed(program, 1, executions);
        }
        "loom" => {
            let mut search = loom::model::Builder::new();
            search.max_branches = 1_000_000;
            search.max_permutations = Some(executions);
            search.check(counted(under_loom::named(program)));
        }
        _ => panic!("TOOL is shuttle or loom, not {tool:?}"),
    }
    let seconds = processor_seconds() - started;
    println!("{} {seconds}", EXECUTIONS.load(Ordering::Relaxed));
}
