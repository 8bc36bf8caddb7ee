//! From a point among encoded rows back to the units of the columns: for released points, where there is no target.
//!
//! A number comes back inside of its bounds; on a log scale what was averaged are logarithms. A category comes back as the share
//! of each of its values (of the second one, where there are two).

use crate::schema::{Feature, Features, Schema};

enum Back {
    Number { min: f64, range: f64, log: bool },
    Share,
    Times(f64),
}

/// The way back for each encoded feature of a schema without a target.
pub struct Decoder {
    names: Vec<String>,
    back: Vec<Back>,
    /// Undoes the scaling into the ball.
    scale: f64,
}

impl Decoder {
    /// For a schema.
    pub fn new(schema: &Schema) -> Decoder {
        let (scale, back) = match &schema.features {
            Features::Table(columns) => {
                let used: Vec<&Feature> = columns.iter().map(|c| &c.1).filter(|f| **f != Feature::Ignore).collect();
                let back = used.iter().flat_map(|feature| {
                    (0..feature.width()).map(|_| match feature {
                        Feature::Number { min, max, log } => Back::Number { min: *min, range: max - min, log: *log },
                        _ => Back::Share,
                    })
                });
                ((used.len() as f64).sqrt(), back.collect())
            }
            Features::Sparse { dimension, row_norm, .. } | Features::Dense { dimension, row_norm, .. } => {
                (*row_norm, (0..*dimension).map(|_| Back::Times(1.0)).collect())
            }
            Features::Image { shape, max, .. } => {
                let pixels: usize = shape.iter().product();
                ((pixels as f64).sqrt(), (0..pixels).map(|_| Back::Times(*max)).collect())
            }
        };
        Decoder { names: schema.feature_names(), back, scale }
    }

    /// Names of the encoded features.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// An encoded cell in the units of its column.
    pub fn value(&self, feature: usize, cell: f64) -> f64 {
        let x = cell * self.scale;
        match self.back[feature] {
            Back::Number { min, range, log } => {
                let along = (0.5 * (x + 1.0)).max(0.0).min(1.0);
                min + if log { (along * range.ln_1p()).exp_m1() } else { along * range }
            }
            Back::Share => x.max(0.0).min(1.0),
            Back::Times(factor) => x * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Encoder, Row};
    use crate::{Cell, Record};

    /// There and back again, for every kind of feature.
    #[test]
    fn what_was_encoded_comes_back() {
        let schema = Schema::parse(
            "[dataset]\nname = \"t\"\n[features.a]\ntype = \"number\"\nmin = 10\nmax = 20\n[features.i]\ntype = \"ignore\"\n\
             [features.b]\ntype = \"category\"\nvalues = [\"x\", \"y\", \"z\"]\n[features.c]\ntype = \"category\"\nvalues = [\"0\", \"1\"]\n\
             [features.d]\ntype = \"number\"\nmin = 0\nmax = 99\nscale = \"log\"\n",
        )
        .unwrap();
        let encoder = Encoder::new(&schema, &["d", "c", "b", "a"].map(String::from), true).unwrap();
        let mut row = Row::default();
        encoder.encode(
            Record::Cells(&[Cell::Number(7.0), Cell::Number(1.0), Cell::Text(b"y"), Cell::Text(b"12.5")]),
            None,
            &mut row,
        );
        let decoder = Decoder::new(&schema);
        assert_eq!(decoder.names(), ["a", "b=x", "b=y", "b=z", "c=1", "d"]);
        let back: Vec<f64> = row.dense.iter().enumerate().map(|(j, x)| decoder.value(j, *x)).collect();
        for (a, b) in back.iter().zip([12.5, 0.0, 1.0, 0.0, 1.0, 7.0]) {
            assert!((a - b).abs() < 1e-12, "{back:?}");
        }
        for (text, records, expected) in [
            ("kind = \"dense\"\ndimension = 2\nrow_norm = 5.0", [3.0, -4.0], [3.0, -4.0]),
            ("kind = \"dense\"\ndimension = 2\nrow_norm = 1.0", [3.0, -4.0], [0.6, -0.8]),
            ("kind = \"image\"\nshape = [2, 1]\nmax = 255", [255.0, 51.0], [255.0, 51.0]),
        ] {
            let schema = Schema::parse(&format!("[dataset]\nname = \"t\"\n[features]\n{text}\n")).unwrap();
            let encoder = Encoder::new(&schema, &[], true).unwrap();
            encoder.encode(Record::Dense(&records), None, &mut row);
            let decoder = Decoder::new(&schema);
            for (j, x) in row.dense.iter().enumerate() {
                assert!((decoder.value(j, *x) - expected[j]).abs() < 1e-12, "{text}");
            }
        }
    }
}
