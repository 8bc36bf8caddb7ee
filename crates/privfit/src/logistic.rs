//! Logistic loss: ln(1 + e^(-y s)) for labels y of -1 and 1.
//!
//! Constants for rows of norm 1: the slope is at most 1, the second derivative at most 1/4.

use privfit_kernel::privacy::Loss;

/// The logistic loss.
pub const LOGISTIC: Loss = Loss {
    name: "logistic",
    outputs: 1,
    parameters: [0.0; 4],
    values: |_, scores, labels, out| {
        for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
            let m = -s * f64::from(*y);
            *o = m.max(0.0) + (-m.abs()).exp().ln_1p();
        }
    },
    slopes: |_, scores, labels, out| slopes(scores, labels, out),
    slopes_exact: |_, scores, labels, out| {
        for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
            let y = f64::from(*y);
            *o = -y / (1.0 + (s * y).exp());
        }
    },
    labels: (-1.0, 1.0),
    rank: 1,
    lipschitz: 1.0,
    smoothness: 0.25,
};

fn slopes(scores: &[f32], labels: &[f32], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { wide_slopes(scores, labels, out) };
    }
    plain_slopes(scores, labels, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn wide_slopes(scores: &[f32], labels: &[f32], out: &mut [f32]) {
    plain_slopes(scores, labels, out);
}

/// -y / (1 + e^(y s)) with a polynomial exponential that the compiler can vectorise; relative error below 3e-7.
#[inline(always)]
fn plain_slopes(scores: &[f32], labels: &[f32], out: &mut [f32]) {
    for ((o, s), y) in out.iter_mut().zip(scores).zip(labels) {
        // NaN passes through max and min as the bound, and the record contributes a finite slope.
        let x = (s * y).max(-80.0).min(80.0) * std::f32::consts::LOG2_E;
        let whole = (x + 12_582_912.0) - 12_582_912.0;
        let t = (x - whole) * std::f32::consts::LN_2;
        let p = 1.0 + t * (1.0 + t * (0.5 + t * (1.0 / 6.0 + t * (1.0 / 24.0 + t * (1.0 / 120.0 + t * (1.0 / 720.0))))));
        let scale = f32::from_bits(((whole as i32 + 127) << 23) as u32);
        *o = -y / (1.0 + p * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many rows at a time are as many rows one by one, to the bit: no record shows in another's slope.
    #[test]
    fn rows_are_independent() {
        let scores: Vec<f32> =
            (0..77).map(|i| [0.3, -7.5, f32::NAN, 1e30, -0.0, f32::INFINITY, 2.25][i % 7] * (i as f32 - 30.0)).collect();
        let labels: Vec<f32> = (0..77).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let mut together = vec![0f32; 77];
        (LOGISTIC.slopes)(&LOGISTIC.parameters, &scores, &labels, &mut together);
        for i in 0..77 {
            let mut alone = [0f32];
            (LOGISTIC.slopes)(&LOGISTIC.parameters, &scores[i..=i], &labels[i..=i], &mut alone);
            assert_eq!(alone[0].to_bits(), together[i].to_bits(), "row {i}");
        }
    }

    #[test]
    fn slopes_are_derivatives_and_bounded() {
        let p = &LOGISTIC.parameters;
        for i in -2000..2000 {
            let s = f64::from(i) * 0.05;
            for y in [-1.0f32, 1.0] {
                let (mut above, mut below, mut exact, mut fast) = ([0.0], [0.0], [0.0], [0.0f32]);
                (LOGISTIC.values)(p, &[s + 1e-5], &[y], &mut above);
                (LOGISTIC.values)(p, &[s - 1e-5], &[y], &mut below);
                (LOGISTIC.slopes_exact)(p, &[s], &[y], &mut exact);
                (LOGISTIC.slopes)(p, &[s as f32], &[y], &mut fast);
                assert!(((above[0] - below[0]) / 2e-5 - exact[0]).abs() < 1e-6, "{s} {y}");
                assert!(
                    (f64::from(fast[0]) - exact[0]).abs() < 4e-7 + 1e-6 * exact[0].abs() * s.abs(),
                    "{s} {y}: {} {}",
                    fast[0],
                    exact[0]
                );
                assert!(exact[0].abs() <= LOGISTIC.lipschitz && fast[0].abs() <= 1.0);
            }
        }
    }
}
