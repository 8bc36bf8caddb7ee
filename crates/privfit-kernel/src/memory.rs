//! Memory for private things, whose number may be private.

/// What unwinds where memory, or disk, for private rows ends. An allocation that fails ends the process with a message that names its size,
/// and how many rows there are may be private; whoever catches a panic while data are open says one thing for all of them.
pub struct NoMemory;

pub(crate) fn no_memory() -> ! {
    std::panic::panic_any(NoMemory)
}

/// Makes room at the end of a list of private things.
pub fn grow<T>(list: &mut Vec<T>, more: usize) {
    if list.try_reserve(more).is_err() {
        no_memory();
    }
}

/// So many zeros, where how many may be private.
pub(crate) fn zeros<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    grow(&mut list, count);
    list.resize(count, T::default());
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_is_not_there_unwinds() {
        // Seen from outside, so that the allocation is not optimised away.
        let grown = std::panic::catch_unwind(|| grow(std::hint::black_box(&mut vec![0u64]), 1 << 58));
        assert!(grown.is_err_and(|e| e.is::<NoMemory>()));
    }
}
