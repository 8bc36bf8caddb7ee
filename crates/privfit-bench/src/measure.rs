//! Time and memory of this process.

/// Processor time of this process in seconds.
pub(crate) fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Largest resident memory so far, in megabytes.
pub(crate) fn peak_memory() -> f64 {
    // SAFETY: the structure is plain data and lives here.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    usage.ru_maxrss as f64 / 1024.0
}

/// The value of a call, and its processor time in seconds.
pub(crate) fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = processor_time();
    let out = f();
    (out, processor_time() - start)
}

/// Bytes per second of one core that reads memory from end to end: the best of a few times over more than caches hold.
pub(crate) fn memory_bandwidth() -> f64 {
    const WORDS: usize = 1 << 25;
    let list: Vec<u64> = (0..WORDS as u64).collect();
    let read = || std::hint::black_box(&list).iter().fold(0u64, |sum, word| sum ^ word);
    let seconds = (0..5).map(|_| timed(|| std::hint::black_box(read())).1).fold(f64::INFINITY, f64::min);
    (8 * WORDS) as f64 / seconds
}
