//! Public constants that several parts of the kernel rest on.

/// Units whose randomness is drawn together, and a multiple of every block that is summed in floating point: what a process holds begins at
/// a multiple of it, so that no bit depends on how units are divided among processes.
pub const ALIGNMENT: usize = 16_384;

/// Most units. Rows are numbered in 32 bits, and scores of so many, each below 2^30, do not wrap; where there are more it is as if memory had
/// ended, so that no other error depends on how many there are.
pub(crate) const MOST_UNITS: usize = u32::MAX as usize - 1;

/// Integer rows are bounded by this Euclidean norm.
pub(crate) const ROW_LIMIT: u64 = i16::MAX as u64;

/// Most units of a block whose sum is made in floating point.
pub(crate) const OCCUPANCY: usize = 128;
