//! The fast way for a row onto 16-bit integers: three short loops that the compiler turns into wide instructions. Whatever
//! is unusual (a cell that is not finite, squares that overflow, a norm that rounding pushed out) goes the slow way.

use crate::limits::ROW_LIMIT;

/// Appends the row if it is an ordinary one; says whether it did.
pub(crate) fn append(features: &[f64], row_norm: f64, cells: &mut Vec<i16>) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide(features, row_norm, cells) };
    }
    plain(features, row_norm, cells)
}

/// The same for the non-zero cells of a sparse row with ascending indices; writes both lists anew.
pub(crate) fn sparse(pairs: &[(u32, f64)], dimension: usize, row_norm: f64, index: &mut Vec<u32>, value: &mut Vec<i16>) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide_sparse(pairs, dimension, row_norm, index, value) };
    }
    plain_sparse(pairs, dimension, row_norm, index, value)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide_sparse(pairs: &[(u32, f64)], dimension: usize, row_norm: f64, index: &mut Vec<u32>, value: &mut Vec<i16>) -> bool {
    plain_sparse(pairs, dimension, row_norm, index, value)
}

#[inline(always)]
fn plain_sparse(pairs: &[(u32, f64)], dimension: usize, row_norm: f64, index: &mut Vec<u32>, value: &mut Vec<i16>) -> bool {
    index.clear();
    index.extend(pairs.iter().map(|p| p.0));
    let ordered = index.iter().zip(index.iter().skip(1)).fold(true, |ordered, (a, b)| ordered & (a < b));
    if !(ordered && index.last().is_none_or(|i| (*i as usize) < dimension)) {
        return false;
    }
    let (blocks, rest) = pairs.as_chunks::<4>();
    let mut lanes = [0f64; 4];
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(l, p)| *l += p.1 * p.1);
    }
    let square = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest.iter().map(|p| p.1 * p.1).sum::<f64>();
    // Not finite: a bad cell, or squares too large.
    if !(square < 1e300) {
        return false;
    }
    let size = square.sqrt();
    let factor = ROW_LIMIT as f64 / if size > row_norm { size } else { row_norm };
    let limit = ROW_LIMIT as f64;
    value.clear();
    value.extend(pairs.iter().map(|p| {
        let z = (p.1 * factor).max(-limit).min(limit);
        // SAFETY: finite and at most 32767 in size.
        unsafe { z.to_int_unchecked::<i32>() as i16 }
    }));
    // The check is on what is stored. Each square is below 2^30.
    let (square, zeros) = value.iter().fold((0u64, 0u32), |(square, zeros), z| {
        (square + u64::from((i32::from(*z) * i32::from(*z)) as u32), zeros + u32::from(*z == 0))
    });
    if square > (ROW_LIMIT * ROW_LIMIT) as u64 {
        return false;
    }
    if zeros > 0 {
        // Cells that became 0 are not kept.
        let mut kept = 0;
        for at in 0..pairs.len() {
            if value[at] != 0 {
                (index[kept], value[kept]) = (index[at], value[at]);
                kept += 1;
            }
        }
        index.truncate(kept);
        value.truncate(kept);
    }
    true
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide(features: &[f64], row_norm: f64, cells: &mut Vec<i16>) -> bool {
    plain(features, row_norm, cells)
}

#[inline(always)]
fn plain(features: &[f64], row_norm: f64, cells: &mut Vec<i16>) -> bool {
    let mut lanes = [0f64; 8];
    let chunks = features.chunks_exact(8);
    let mut square: f64 = chunks.remainder().iter().map(|x| x * x).sum();
    for chunk in chunks {
        for (l, x) in lanes.iter_mut().zip(chunk) {
            *l += x * x;
        }
    }
    square += lanes.iter().sum::<f64>();
    // Not finite: a bad cell, or squares too large. Tiny squares may vanish, and then the row is inside anyway.
    if !(square < 1e300) {
        return false;
    }
    let size = square.sqrt();
    let factor = ROW_LIMIT as f64 / if size > row_norm { size } else { row_norm };
    let first = cells.len();
    let limit = ROW_LIMIT as f64;
    cells.extend(features.iter().map(|x| {
        let z = (x * factor).max(-limit).min(limit);
        // SAFETY: finite and at most 32767 in size.
        unsafe { z.to_int_unchecked::<i32>() as i16 }
    }));
    // The check is on what was stored, whatever the floating-point code did.
    let mut lanes = [0i64; 8];
    let stored = cells[first..].chunks_exact(8);
    let mut square: i64 = stored.remainder().iter().map(|z| i64::from(*z) * i64::from(*z)).sum();
    for chunk in stored {
        for (l, z) in lanes.iter_mut().zip(chunk) {
            *l += i64::from(i32::from(*z) * i32::from(*z));
        }
    }
    square += lanes.iter().sum::<i64>();
    if square > (ROW_LIMIT * ROW_LIMIT) as i64 {
        cells.truncate(first);
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::{L2, Norm};
    use crate::rng::{NoiseRng, Words};

    /// Ordinary rows of many sizes: inside of the ball on the integers, and next to the row itself.
    #[test]
    fn rows_are_in_the_ball_and_close() {
        let mut rng = NoiseRng::from_key([4; 32]);
        for case in 0..20_000 {
            let d = 1 + case % 37;
            let size = 10f64.powi(case % 7 - 3);
            let row: Vec<f64> = (0..d).map(|_| (rng.word() as f64 / 2f64.powi(63) - 1.0) * size).collect();
            let mut cells = vec![7i16; 3];
            if !append(&row, 1.5, &mut cells) {
                continue;
            }
            let stored: Vec<i64> = cells[3..].iter().map(|z| i64::from(*z)).collect();
            assert!(L2::within(&stored, ROW_LIMIT), "{row:?}");
            let shrink = (1.5 / L2::size(&row)).min(1.0);
            for (x, z) in row.iter().zip(&stored) {
                assert!((x * shrink - *z as f64 * 1.5 / ROW_LIMIT as f64).abs() < 1.001 * 1.5 / ROW_LIMIT as f64);
            }
        }
        let pairs = |pairs: &[(u32, f64)]| {
            let (mut index, mut value) = (vec![1u32], vec![5i16]);
            sparse(pairs, 10, 1.0, &mut index, &mut value).then_some((index, value))
        };
        for row in [[(3, 0.6), (7, 0.0), (9, -0.8)], [(3, 6e9), (7, 0.0), (9, -8e9)]] {
            let (index, value) = pairs(&row).unwrap();
            assert!(index == [3, 9] && (value[0] - 19660).abs() <= 1 && (value[1] + 26213).abs() <= 1, "{index:?} {value:?}");
        }
        assert_eq!(pairs(&[]), Some((vec![], vec![])));
        for bad in [&[(3, f64::NAN)][..], &[(3, 1e200)], &[(9, 0.1), (3, 0.1)], &[(3, 0.1), (3, 0.1)], &[(10, 0.1)]] {
            assert!(pairs(bad).is_none(), "{bad:?}");
        }
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e200] {
            let mut cells = Vec::new();
            assert!(!append(&[0.1, bad, 0.2], 1.0, &mut cells) && cells.is_empty());
        }
    }
}
