//! Networks by name, and those for which nobody gave a name.

use super::layer::{Layer, Shape};
use crate::error::{Error, Result};
use crate::schema::Schema;

/// Name and layers before the scores.
const PRESETS: &[(&str, &[&str])] = &[
    ("linear", &[]),
    ("mlp", &["flatten", "dense 128", "tanh", "dense 64", "tanh"]),
    // Two convolutions and two dense layers, of which the scores are one.
    (
        "mnist_cnn",
        &[
            "convolution 16 8 stride 2 padding 3",
            "tanh",
            "max_pool 2 stride 1",
            "convolution 32 4 stride 2",
            "tanh",
            "max_pool 2 stride 1",
            "flatten",
            "dense 32",
            "tanh",
        ],
    ),
    (
        "cifar_cnn5",
        &[
            "convolution 32 3 padding 1",
            "tanh",
            "max_pool 2",
            "convolution 64 3 padding 1",
            "tanh",
            "max_pool 2",
            "convolution 64 3 padding 1",
            "tanh",
            "max_pool 2",
            "flatten",
            "dense 128",
            "tanh",
        ],
    ),
    (
        "cifar_cnn6",
        &[
            "convolution 32 3 padding 1",
            "tanh",
            "convolution 32 3 padding 1",
            "tanh",
            "average_pool 2",
            "convolution 64 3 padding 1",
            "tanh",
            "average_pool 2",
            "convolution 128 3 padding 1",
            "tanh",
            "average_pool 2",
            "flatten",
            "dense 128",
            "tanh",
        ],
    ),
];

/// Layers from words: the name of a preset alone, or a layer each.
pub fn layers_of(words: &[String]) -> Result<Vec<Layer>> {
    let preset = match words {
        [one] => PRESETS.iter().find(|p| p.0 == one.trim()),
        _ => None,
    };
    match preset {
        Some((_, layers)) => layers.iter().map(|l| Layer::parse(l)).collect(),
        None => words.iter().map(|l| Layer::parse(l)).collect::<Result<_>>().map_err(|e: Error| {
            let names: Vec<&str> = PRESETS.iter().map(|p| p.0).collect();
            e.text(format!("; or give the name of a network alone: {}", names.join(", ")))
        }),
    }
}

/// The layers for data of a schema if nobody says which.
pub(crate) fn usual_layers(schema: &Schema) -> Vec<Layer> {
    let shape = input_shape(schema, 1);
    let name = match (shape.height.min(shape.width), shape.channels) {
        _ if schema.scatters() => "linear",
        (24.., 1) => "mnist_cnn",
        (16.., _) => "cifar_cnn5",
        _ => "mlp",
    };
    layers_of(&[name.to_string()]).unwrap_or_default()
}

/// The shape of rows: that of images, or a row of so many numbers.
pub(crate) fn input_shape(schema: &Schema, numbers: usize) -> Shape {
    match schema.image_shape() {
        Some([height, width, channels]) => Shape { height, width, channels },
        None => Shape::flat(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::super::architecture::Network;
    use super::*;

    #[test]
    fn presets_fit_their_images() {
        let (mnist, cifar) = (Shape { height: 28, width: 28, channels: 1 }, Shape { height: 32, width: 32, channels: 3 });
        let weights = |name: &str, shape: Shape| {
            Network::new(shape, &layers_of(&[name.to_string()]).unwrap(), 10, 1.0, 0.0).unwrap().dimension()
        };
        // Counted by hand: 64 16 + 16, 256 32 + 32, 512 32 + 32, 32 10 + 10.
        assert_eq!(weights("mnist_cnn", mnist), 1040 + 8224 + 16416 + 330);
        assert_eq!(weights("linear", mnist), 7850);
        assert_eq!(weights("mlp", mnist), 785 * 128 + 129 * 64 + 650);
        assert_eq!(weights("cifar_cnn5", cifar), 28 * 32 + (9 * 32 + 1) * 64 + (9 * 64 + 1) * 64 + 1025 * 128 + 1290);
        assert!(weights("cifar_cnn6", cifar) > 0);
        let message = layers_of(&["mnist".into()]).unwrap_err().to_string();
        assert!(message.contains("mnist_cnn") && message.contains("dense N"), "{message}");
    }
}
