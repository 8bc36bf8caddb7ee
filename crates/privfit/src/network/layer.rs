//! Layers of a network, as words in a job file and as shapes.

use crate::error::{Error, Result};
use std::fmt;

/// Height, width and channels of what goes through a network; a row of numbers has one place with that many channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
}

impl Shape {
    /// Whether these are scales and shifts of all channels, or of all numbers.
    pub(crate) fn can_be_normalised(&self, normal: &[f32]) -> bool {
        [self.channels, self.size()].iter().any(|n| normal.len() == 2 * n)
    }

    /// A row of numbers.
    pub fn flat(channels: usize) -> Shape {
        Shape { height: 1, width: 1, channels }
    }

    /// Numbers in all.
    pub fn size(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.height, self.width) {
            (1, 1) => write!(f, "{}", self.channels),
            _ => write!(f, "{} x {} x {}", self.height, self.width, self.channels),
        }
    }
}

/// One layer. Its words are its name and its numbers, such as `convolution 16 8 stride 2 padding 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// `dense N`: N weighted sums of everything.
    Dense(usize),
    /// `convolution N K [stride S] [padding P]`: N weighted sums of every window of K x K pixels.
    Convolution {
        /// Sums of a window.
        filters: usize,
        /// Pixels of a side of a window.
        kernel: usize,
        /// Pixels from one window to the next.
        stride: usize,
        /// Rows and columns of zeros around the picture.
        padding: usize,
    },
    /// `max_pool K [stride S]`: the largest number of every window, for each channel.
    MaxPool {
        /// Pixels of a side of a window.
        kernel: usize,
        /// Pixels from one window to the next.
        stride: usize,
    },
    /// `average_pool K [stride S]`: the mean of every window, for each channel.
    AveragePool {
        /// Pixels of a side of a window.
        kernel: usize,
        /// Pixels from one window to the next.
        stride: usize,
    },
    /// `group_norm G`: each of G groups of channels has the mean 0 and the variance 1 within an example, then a scale and an offset for each channel.
    GroupNorm(usize),
    /// `tanh`.
    Tanh,
    /// `relu`: what is negative becomes 0.
    Relu,
    /// `flatten`: a picture as a row of numbers.
    Flatten,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layer::Dense(n) => write!(f, "dense {n}"),
            Layer::Convolution { filters, kernel, stride, padding } => {
                write!(f, "convolution {filters} {kernel} stride {stride} padding {padding}")
            }
            Layer::MaxPool { kernel, stride } => write!(f, "max_pool {kernel} stride {stride}"),
            Layer::AveragePool { kernel, stride } => write!(f, "average_pool {kernel} stride {stride}"),
            Layer::GroupNorm(groups) => write!(f, "group_norm {groups}"),
            Layer::Tanh => write!(f, "tanh"),
            Layer::Relu => write!(f, "relu"),
            Layer::Flatten => write!(f, "flatten"),
        }
    }
}

/// Most numbers of anything in a network.
const MOST: usize = 1 << 24;

const FORMS: &str = "a layer is one of: dense N, convolution N K [stride S] [padding P], max_pool K [stride S], average_pool K [stride S], group_norm G, tanh, relu, flatten";

impl Layer {
    /// From its words.
    pub fn parse(text: &str) -> Result<Layer> {
        let bad = || Error::misuse(format!("layer \"{text}\" is not one that is known: {FORMS}"));
        let mut words = text.split_whitespace();
        let name = words.next().ok_or_else(bad)?;
        let (mut plain, mut stride, mut padding) = (Vec::new(), None, None);
        while let Some(word) = words.next() {
            let number = |word: Option<&str>| word.and_then(|w| w.parse::<usize>().ok()).filter(|n| *n <= MOST).ok_or_else(bad);
            match word {
                "stride" if stride.is_none() => stride = Some(number(words.next())?),
                "padding" if padding.is_none() => padding = Some(number(words.next())?),
                _ => plain.push(number(Some(word))?),
            }
        }
        let layer = match (name, plain.as_slice(), stride, padding) {
            ("dense", [n], None, None) => Layer::Dense(*n),
            ("convolution", [filters, kernel], stride, padding) => Layer::Convolution {
                filters: *filters,
                kernel: *kernel,
                stride: stride.unwrap_or(1),
                padding: padding.unwrap_or(0),
            },
            ("max_pool", [kernel], stride, None) => Layer::MaxPool { kernel: *kernel, stride: stride.unwrap_or(*kernel) },
            ("average_pool", [kernel], stride, None) => Layer::AveragePool { kernel: *kernel, stride: stride.unwrap_or(*kernel) },
            ("group_norm", [groups], None, None) => Layer::GroupNorm(*groups),
            ("tanh", [], None, None) => Layer::Tanh,
            ("relu", [], None, None) => Layer::Relu,
            ("flatten", [], None, None) => Layer::Flatten,
            _ => return Err(bad()),
        };
        let zero = match layer {
            Layer::Dense(n) | Layer::GroupNorm(n) => n == 0,
            Layer::Convolution { filters, kernel, stride, .. } => filters == 0 || kernel == 0 || stride == 0,
            Layer::MaxPool { kernel, stride } | Layer::AveragePool { kernel, stride } => kernel == 0 || stride == 0,
            _ => false,
        };
        if zero { Err(bad()) } else { Ok(layer) }
    }

    /// What comes out of it; `number` is its place in the list, from 1.
    pub fn shape(&self, number: usize, input: Shape) -> Result<Shape> {
        let wrong = |what: String| Error::misuse(format!("layer {number} ({self}): {what}"));
        let windows = |size: usize, kernel: usize, stride: usize, padding: usize, side: &str| -> Result<usize> {
            let all = size + 2 * padding;
            if kernel > all {
                return Err(wrong(format!(
                    "its windows of {kernel} pixels are larger than the {side} of {all}: give a kernel of at most {all}"
                )));
            }
            Ok((all - kernel) / stride + 1)
        };
        let picture = |kernel, stride, padding, channels| -> Result<Shape> {
            Ok(Shape {
                height: windows(input.height, kernel, stride, padding, "height")?,
                width: windows(input.width, kernel, stride, padding, "width")?,
                channels,
            })
        };
        let out = match *self {
            Layer::Dense(n) => match (input.height, input.width) {
                (1, 1) => Shape::flat(n),
                _ => return Err(wrong(format!("it takes a row of numbers, and {input} comes in: put flatten before it"))),
            },
            Layer::Convolution { filters, kernel, stride, padding } => picture(kernel, stride, padding, filters)?,
            Layer::MaxPool { kernel, stride } | Layer::AveragePool { kernel, stride } => {
                picture(kernel, stride, 0, input.channels)?
            }
            Layer::GroupNorm(groups) if !input.channels.is_multiple_of(groups) => {
                return Err(wrong(format!(
                    "{groups} groups do not divide the {} channels that come in: give a divisor",
                    input.channels
                )));
            }
            Layer::Flatten => Shape::flat(input.size()),
            Layer::GroupNorm(_) | Layer::Tanh | Layer::Relu => input,
        };
        if out.size() > MOST {
            return Err(wrong(format!("{out} numbers come out of it, and at most {MOST} may: give fewer or smaller layers")));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_their_words() {
        for text in [
            "dense 32",
            "convolution 16 8 stride 2 padding 3",
            "max_pool 2 stride 1",
            "average_pool 3 stride 2",
            "group_norm 4",
            "tanh",
            "relu",
            "flatten",
        ] {
            assert_eq!(Layer::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Layer::parse(" max_pool  2 ").unwrap(), Layer::MaxPool { kernel: 2, stride: 2 });
        for text in [
            "",
            "dense",
            "dense 0",
            "dense 1 2",
            "dense x",
            "convolution 4",
            "tanh 1",
            "max_pool 2 padding 1",
            "convolution 4 3 stride",
            "softmax",
            "dense 99999999999",
        ] {
            let message = Layer::parse(text).unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("dense N"), "{message}");
        }
    }

    #[test]
    fn shapes_that_do_not_fit_name_the_layer_and_both_sizes() {
        let image = Shape { height: 28, width: 28, channels: 1 };
        let conv = Layer::parse("convolution 16 8 stride 2 padding 3").unwrap();
        assert_eq!(conv.shape(1, image).unwrap(), Shape { height: 14, width: 14, channels: 16 });
        for (text, input, words) in [
            ("dense 4", image, vec!["layer 3", "28 x 28 x 1", "flatten"]),
            ("convolution 4 40", image, vec!["layer 3", "40", "28"]),
            ("max_pool 3", Shape { height: 2, width: 9, channels: 4 }, vec!["layer 3", "3 pixels", "height of 2"]),
            ("group_norm 3", Shape { height: 2, width: 9, channels: 4 }, vec!["layer 3", "3 groups", "4 channels"]),
        ] {
            let message = Layer::parse(text).unwrap().shape(3, input).unwrap_err().to_string();
            assert!(words.iter().all(|w| message.contains(w)), "{message}");
        }
    }
}
