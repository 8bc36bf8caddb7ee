//! Sizes of memory, as people write them.

use crate::ui::Failure;

/// Units, and bytes of each: powers of ten, and of two where an i says so.
const UNITS: [(&str, f64); 10] = [
    ("kib", 1024.0),
    ("mib", 1024.0 * 1024.0),
    ("gib", 1024.0 * 1024.0 * 1024.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("k", 1e3),
    ("m", 1e6),
    ("g", 1e9),
    ("b", 1.0),
];

/// Bytes of a size like 300MB.
pub(crate) fn size(text: &str) -> Result<u64, Failure> {
    let small = text.trim().to_lowercase();
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| small.strip_suffix(name).map(|n| (n, *unit))).unwrap_or((&small, 1.0));
    let bytes = number.trim().parse::<f64>().map_or(f64::NAN, |number| (number * unit).floor());
    match (1.0..=1e18).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err(Failure::misuse(format!("memory {text:?} is not a size: give one like 300MB, 2GB or 1.5GiB"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_ten_and_of_two() {
        for (text, bytes) in [
            ("300MB", 300_000_000),
            ("2GB", 2_000_000_000),
            ("2 gb", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("64KiB", 65_536),
            ("7KB", 7_000),
            ("3MiB", 3 << 20),
            ("12345", 12_345),
            ("12b", 12),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(size(text).ok(), Some(bytes), "{text}");
        }
        for text in ["", "MB", "-1MB", "0", "nan", "inf GB", "1TBx", "3 TB", "1e30GB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
