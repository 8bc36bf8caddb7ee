//! Pages of a Parquet column, looked at before the `parquet` crate decodes them. It allocates what they announce, and a failed
//! allocation ends the process with a message: no error, and no panic that could be caught.

use super::thrift::{Thrift, page_sizes};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use std::fs::File;

/// Largest page, decompressed. Writers aim at 1 MiB; the format would allow 2 GiB.
const PAGE_LIMIT: u64 = 256 << 20;

/// Longest header of a page.
const HEADER_LIMIT: u64 = 64 << 10;

/// Most texts of a page in delta encoding. A run of equal lengths takes no room, so the size of the page does not bound it.
const TEXTS_LIMIT: u32 = 64 << 20;

/// Values of a column, by the headers of its pages; none unless these lie in the file and their sizes are bounded.
pub(crate) fn check_sizes(file: &File, chunk: &ColumnChunkMetaData) -> Option<u64> {
    let size = file.metadata().ok()?.len();
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let mut at = u64::try_from(start).ok()?;
    let end = at.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?;
    if end > size {
        return None;
    }
    let mut values = 0u64;
    while at < end {
        let window = (end - at).min(HEADER_LIMIT);
        let page = page_sizes(&file.get_bytes(at, usize::try_from(window).ok()?).ok()?)?;
        if page.full > PAGE_LIMIT {
            return None;
        }
        values = values.checked_add(page.values)?;
        at = at.checked_add(page.header + page.compressed)?;
    }
    Some(values)
}

/// Pages whose numbers of values were compared with their lengths.
pub(crate) struct CheckedPages {
    pub(crate) pages: Box<dyn PageReader>,
    /// Whether values can be null, so that a page starts with their levels.
    pub(crate) optional: bool,
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        match page.as_ref().is_none_or(|page| check(page, self.optional).is_some()) {
            true => Ok(page),
            false => Err(ParquetError::General(String::new())),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

/// None if a page announces more values than it can have, or has an encoding that is not known to be harmless.
fn check(page: &Page, optional: bool) -> Option<()> {
    let (bytes, levels, count, encoding) = match page {
        // A value of a dictionary takes at least a byte.
        Page::DictionaryPage { buf, num_values, .. } => {
            return (usize::try_from(*num_values).ok()? <= buf.len()).then_some(());
        }
        Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
            let levels = match def_level_encoding {
                _ if !optional => 0,
                Encoding::RLE => 4 + u64::from(u32::from_le_bytes(*buf.first_chunk()?)),
                // An old encoding, one bit to a value.
                _ => u64::from(num_values.div_ceil(8)),
            };
            (buf, levels, *num_values, *encoding)
        }
        Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len), *num_values, *encoding)
        }
    };
    let mut values = Thrift(bytes.get(usize::try_from(levels).ok()?..)?);
    match encoding {
        Encoding::PLAIN | Encoding::RLE | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => Some(()),
        Encoding::DELTA_BINARY_PACKED | Encoding::BYTE_STREAM_SPLIT => Some(()),
        // The lengths of the texts.
        Encoding::DELTA_LENGTH_BYTE_ARRAY => pass_deltas(&mut values, count),
        // The lengths that a text shares with the one before, then the lengths of the rest.
        Encoding::DELTA_BYTE_ARRAY => pass_deltas(&mut values, count).and_then(|()| pass_deltas(&mut values, count)),
        _ => None,
    }
}

/// Passes over integers in delta encoding, of which there may be so many.
fn pass_deltas(bytes: &mut Thrift<'_>, most: u32) -> Option<()> {
    let block = bytes.varint()?;
    let miniblocks = bytes.varint()?;
    let count = bytes.varint()?;
    bytes.varint()?;
    // Values in a miniblock come in groups of 32, and so take whole bytes.
    if count > u64::from(most.min(TEXTS_LIMIT))
        || miniblocks == 0
        || !block.is_multiple_of(miniblocks.checked_mul(32)?)
        || block == 0
    {
        return None;
    }
    let each = block / miniblocks;
    // The first one is in the header.
    let mut left = count.saturating_sub(1);
    while left > 0 {
        bytes.varint()?;
        for &width in bytes.bytes(usize::try_from(miniblocks).ok()?)? {
            if left > 0 {
                bytes.bytes(usize::try_from((each / 8).checked_mul(width.into())?).ok()?)?;
                left = left.saturating_sub(each);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas() {
        // 34 integers in blocks of 128 with 4 miniblocks: 33 deltas, in miniblocks of 1 and of 2 bits.
        let mut bytes = vec![128, 1, 4, 34, 0, 0, 1, 2, 77, 77];
        bytes.resize(bytes.len() + 4 + 8, 0);
        bytes.push(99);
        let left = |bytes: &[u8], most: u32| {
            let mut rest = Thrift(bytes);
            pass_deltas(&mut rest, most).map(|()| rest.0.len())
        };
        assert_eq!(left(&bytes, 34), Some(1));
        assert_eq!(left(&bytes, 33), None);
        assert_eq!(left(&bytes[..bytes.len() - 2], 34), None);
        assert_eq!(left(&[128, 1, 4, 1, 0], 1), Some(0));
        for bad in [[128, 1, 0, 1, 0], [0, 1, 4, 1, 0], [129, 1, 4, 1, 0], [128, 1, 5, 1, 0]] {
            assert_eq!(left(&bad, 1), None, "{bad:?}");
        }
    }

    #[test]
    fn counts() {
        let page =
            |num_values| Page::DictionaryPage { buf: vec![0; 8].into(), num_values, encoding: Encoding::PLAIN, is_sorted: false };
        assert_eq!(check(&page(8), false), Some(()));
        assert_eq!(check(&page(9), false), None);
    }
}
