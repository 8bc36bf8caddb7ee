//! What the processor can do.

/// Whether it has the wide instructions that inner loops have a version for.
#[cfg(target_arch = "x86_64")]
pub(crate) fn wide() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn wide() -> bool {
    false
}
