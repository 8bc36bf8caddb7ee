//! From the bytes of a JPEG or PNG file to samples, by rules that are the same for every file:
//!
//! * The format is known by the first bytes, not by the name.
//! * Whatever is broken, cut off or larger than public limits is no picture. A decoder that panics has found no picture either.
//! * White is the largest pixel of the schema, whether a sample has 1, 2, 4, 8 or 16 bits. Palettes become colours.
//! * What is transparent is mixed with black. Of an animation the first picture counts. A hint to turn the picture is not followed.
//! * Grey is 0.299 red + 0.587 green + 0.114 blue; a grey picture has three equal colours.

use privfit_kernel::quietly;
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Largest file of a picture, in bytes.
pub(crate) const MOST_FILE: u64 = 64 << 20;

/// Most pixels on a side.
pub(crate) const MOST_SIDE: usize = 1 << 14;

/// Most bytes of samples: a small file can announce a picture that fills all memory.
pub(crate) const MOST_SAMPLES: usize = 1 << 27;

/// Why a file is a null record. For the data owner only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// The file can't be opened, read or unpacked.
    Unreadable,
    /// It is neither a whole JPEG file nor a whole PNG file.
    Broken,
    /// It is larger than the limits.
    TooLarge,
    /// Its size is not the one of the schema, and the schema does not say `resize = true`.
    WrongSize,
}

impl Problem {
    /// What to tell the owner.
    pub fn text(self) -> &'static str {
        match self {
            Problem::Unreadable => "a file that can't be opened or unpacked",
            Problem::Broken => "a picture that is broken or cut off, or neither JPEG nor PNG",
            Problem::TooLarge => "a picture of more than 64 MB, 16384 pixels on a side or 128 MB of samples",
            Problem::WrongSize => "a picture of another size than shape (resize = true would resize it)",
        }
    }
}

/// Samples of a picture, row after row.
#[derive(Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha.
    channels: usize,
    /// Two bytes to a sample, the higher one first.
    wide: bool,
    bytes: Vec<u8>,
}

/// The picture in a file. With a size, one of another size is not decoded.
pub(crate) fn decode(file: &[u8], size: Option<(usize, usize)>) -> Result<Picture, Problem> {
    let decoder = match file {
        [0xff, 0xd8, ..] => jpeg,
        [0x89, b'P', b'N', b'G', ..] => png,
        _ => return Err(Problem::Broken),
    };
    quietly(|| decoder(file, size)).unwrap_or(Err(Problem::Broken))
}

/// What a header announces against the limits and the size that is wanted.
fn admit(height: usize, width: usize, pixel: usize, size: Option<(usize, usize)>) -> Result<(), Problem> {
    let bytes = height.saturating_mul(width).saturating_mul(pixel);
    match size {
        _ if height == 0 || width == 0 => Err(Problem::Broken),
        _ if height.max(width) > MOST_SIDE || bytes > MOST_SAMPLES => Err(Problem::TooLarge),
        Some(size) if size != (height, width) => Err(Problem::WrongSize),
        _ => Ok(()),
    }
}

fn jpeg(file: &[u8], size: Option<(usize, usize)>) -> Result<Picture, Problem> {
    // Not strict, the decoder would fill up what is cut off with grey.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|_| Problem::Broken)?;
    let info = decoder.info().ok_or(Problem::Broken)?;
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    admit(height, width, 3, size)?;
    // The decoder takes a picture that ends with its last row for a whole one.
    if !ends(file) {
        return Err(Problem::Broken);
    }
    let mut bytes = vec![0; 3 * height * width];
    decoder.decode_into(&mut bytes).map_err(|_| Problem::Broken)?;
    Ok(Picture { height, width, channels: 3, wide: false, bytes })
}

/// Whether the mark of the end is there. Not at the very end: some cameras append more.
fn ends(file: &[u8]) -> bool {
    memchr::memmem::rfind(file, &[0xff, 0xd9]).is_some()
}

fn png(file: &[u8], size: Option<(usize, usize)>) -> Result<Picture, Problem> {
    let broken = |_: png::DecodingError| Problem::Broken;
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), png::Limits { bytes: MOST_SAMPLES });
    // Texts and profiles can be packed as tightly as pictures, and are not needed.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(png::Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(broken)?;
    let (height, width) = (header.height as usize, header.width as usize);
    // Before anything is unpacked; colours from a palette and with alpha take four bytes.
    let sample = if header.bit_depth == png::BitDepth::Sixteen { 2 } else { 1 };
    admit(height, width, 4 * sample, size)?;
    let mut reader = decoder.read_info().map_err(broken)?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or(Problem::TooLarge)?];
    let frame = reader.next_frame(&mut bytes).map_err(broken)?;
    reader.finish().map_err(broken)?;
    let channels = frame.color_type.samples();
    let wide = frame.bit_depth == png::BitDepth::Sixteen;
    let narrow = frame.bit_depth == png::BitDepth::Eight;
    let whole = (frame.height as usize, frame.width as usize) == (height, width);
    let palette = frame.color_type == png::ColorType::Indexed;
    let length = height * width * channels * sample;
    if !whole || palette || !(wide || narrow) || wide != (sample == 2) || bytes.len() < length {
        return Err(Problem::Broken);
    }
    Ok(Picture { height, width, channels, wide, bytes })
}

impl Picture {
    /// A row as so many channels (1 or 3), from 0 to `max`.
    pub(crate) fn row(&self, y: usize, channels: usize, max: f64, out: &mut [f64]) {
        let length = self.width * self.channels;
        match self.wide {
            false => {
                let row = &self.bytes[y * length..][..length];
                self.pixels(row, 255.0, |s| f64::from(*s), channels, max, out);
            }
            true => {
                let row = self.bytes[2 * y * length..][..2 * length].as_chunks::<2>().0;
                self.pixels(row, 65_535.0, |s| f64::from(u16::from_be_bytes(*s)), channels, max, out);
            }
        }
    }

    fn pixels<T>(&self, row: &[T], full: f64, of: impl Fn(&T) -> f64, channels: usize, max: f64, out: &mut [f64]) {
        let factor = max / full;
        for (pixel, out) in row.chunks_exact(self.channels).zip(out.chunks_exact_mut(channels)) {
            let (samples, alpha) = match self.channels {
                2 | 4 => (&pixel[..self.channels - 1], of(&pixel[self.channels - 1]) / full),
                _ => (pixel, 1.0),
            };
            let value = |i: usize| of(&samples[i]) * alpha;
            match (samples.len(), channels) {
                (1, _) => out.fill(value(0) * factor),
                (_, 1) => out[0] = (0.299 * value(0) + 0.587 * value(1) + 0.114 * value(2)) * factor,
                _ => (0..3).for_each(|i| out[i] = value(i) * factor),
            }
        }
    }
}
