//! Functions over many rows with the widest instructions that the processor has.

/// A function with the body of a second one, which is compiled twice: for every processor, and for those with AVX2 and FMA.
macro_rules! wide {
    (fn $name:ident = $plain:ident, $float:ty) => {
        fn $name(p: &LossParameters, scores: &[$float], labels: &[f32], out: &mut [$float]) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide(p: &LossParameters, scores: &[$float], labels: &[f32], out: &mut [$float]) {
                    $plain(p, scores, labels, out);
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the instructions.
                    return unsafe { wide(p, scores, labels, out) };
                }
            }
            $plain(p, scores, labels, out);
        }
    };
}
pub(super) use wide;
