//! The structure of exported ONNX files, read back with a small reader of the wire format. That runtimes compute the same numbers is
//! checked by `crates/privfit-cli/tests/onnx_check.py`.

use privfit::model::Model;
use privfit::{Artifact, Schema, affine, onnx};

/// Fields of a message: number and bytes (a whole number as its eight bytes).
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (head, rest) = bytes.split_at(length);
                bytes = rest;
                head.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        out.push((key >> 3, value));
    }
    out
}

fn all(message: &[u8], field: u64) -> Vec<Vec<u8>> {
    fields(message).into_iter().filter(|f| f.0 == field).map(|f| f.1).collect()
}

fn text(message: &[u8], field: u64) -> String {
    String::from_utf8(all(message, field).concat()).unwrap()
}

fn names(graph: &[u8], field: u64) -> Vec<String> {
    all(graph, field).iter().map(|v| text(v, 1)).collect()
}

/// A model of the corpus with another schema, loss and weights.
fn model(schema: &str, loss: &str, parameters: &[f64], weights: Vec<Vec<f64>>) -> Artifact {
    let mut artifact = Artifact::from_bytes(include_bytes!("../corpus/model/objective.json")).unwrap();
    artifact.schema = Schema::parse(schema).unwrap();
    let (loss, classes) = (privfit::loss::find(loss).unwrap(), artifact.schema.task().classes());
    artifact.model = Model::new(loss, parameters.to_vec(), classes, weights, None);
    artifact
}

const MIXED: &str = "[dataset]\nname = \"t\"\n[target]\ncolumn = \"y\"\nbounds = [0, 10]\n[features.value]\ntype = \"number\"\nmin = 0\nmax = 4\n\
    [features.skipped]\ntype = \"ignore\"\n[features.ward]\ntype = \"category\"\nvalues = [\"a\", \"b\", \"c\"]\n\
    [features.sex]\ntype = \"category\"\nvalues = [\"f\", \"m\"]\n";

#[test]
fn a_classifier_of_numbers_has_one_input_and_names_its_guarantee() {
    let file = include_bytes!("../corpus/model/objective.json");
    let artifact = Artifact::from_bytes(file).unwrap();
    let bytes = onnx::export(&artifact, file).unwrap();
    assert_eq!(bytes, onnx::export(&artifact, file).unwrap(), "the same model, the same bytes");
    assert_eq!(text(&bytes, 2), "privfit");
    let sets: Vec<(String, u8)> = all(&bytes, 8).iter().map(|s| (text(s, 1), all(s, 2)[0][0])).collect();
    assert_eq!(sets, [("".into(), 13), ("ai.onnx.ml".into(), 2)]);
    let graph = &all(&bytes, 7)[0];
    assert_eq!(names(graph, 11), ["features"]);
    assert_eq!(names(graph, 12), ["label", "probabilities"]);
    let operations: Vec<String> = all(graph, 1).iter().map(|n| text(n, 4)).collect();
    let expected = "Cast Sub Max Min Div Mul Sub IsNaN Where Mul ReduceSum Mul Add Concat Min Add Max Sqrt Div MatMul Greater Cast Reshape \
                    Gather Identity Neg Sigmoid Sigmoid Min Min Add Div Div Concat Cast Identity";
    assert_eq!(operations.join(" "), expected);
    let facts: Vec<(String, String)> = all(&bytes, 14).iter().map(|p| (text(p, 1), text(p, 2))).collect();
    let get = |key: &str| facts.iter().find(|f| f.0 == key).unwrap().1.clone();
    assert_eq!(get("privfit.adjacency"), artifact.guarantee.adjacency.name());
    assert_eq!(get("privfit.simulated"), "false");
    assert_eq!(get("privfit.delta"), format!("{:e}", artifact.guarantee.delta));
    let epsilon: f64 = get("privfit.epsilon.zero_out").parse().unwrap();
    assert!(epsilon >= artifact.guarantee.zero_out.unwrap() && epsilon < artifact.guarantee.zero_out.unwrap() + 1e-3);
    assert_eq!(get("privfit.model_sha256").len(), 64);
}

#[test]
fn every_tensor_that_is_used_is_made_before() {
    let artifact = model(MIXED, "squared", &[2.0], vec![vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]);
    let bytes = onnx::export(&artifact, b"").unwrap();
    let graph = &all(&bytes, 7)[0];
    assert_eq!(names(graph, 11), ["value", "ward", "sex"]);
    // A column has the name of the output already.
    assert_eq!(names(graph, 12), ["value_"]);
    let mut known = names(graph, 11);
    known.extend(all(graph, 5).iter().map(|t| text(t, 8)));
    for node in all(graph, 1) {
        for input in all(&node, 1) {
            assert!(known.contains(&String::from_utf8(input).unwrap()), "{}", text(&node, 4));
        }
        let made = text(&node, 2);
        assert!(!known.contains(&made), "{made} is made twice");
        known.push(made);
    }
    assert!(names(graph, 12).iter().all(|o| known.contains(o)));
}

/// Every layer has its operation, pictures are turned once on the way in and once before they are flattened, and the constant is left out.
#[test]
fn a_network_has_an_operation_for_every_layer() {
    let schema = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"a\", \"b\", \"c\"]\n[features]\nkind = \"image\"\nshape = [8, 8, 2]\nmax = 255\n";
    let mut artifact = model(schema, "softmax", &[], vec![vec![0.0; 129]; 3]);
    let layers =
        ["convolution 4 3 padding 1", "group_norm 2", "tanh", "max_pool 2", "average_pool 2", "flatten", "dense 5", "relu"];
    let count = (9 * 2 + 1) * 4 + 8 + (16 + 1) * 5 + 6 * 3;
    let network = serde_json::json!({"kind": "network", "loss": "softmax", "loss_parameters": [], "classes": 3, "input": [8, 8, 2],
        "scale": 8.0, "shift": 0.0, "layers": layers, "weights": vec![0.5; count]});
    artifact.model = serde_json::from_value(network.clone()).unwrap();
    let bytes = onnx::export(&artifact, b"").unwrap();
    let graph = &all(&bytes, 7)[0];
    assert_eq!(
        (names(graph, 11), names(graph, 12)),
        (vec!["features".to_string()], vec!["label".into(), "probabilities".into()])
    );
    let operations: Vec<String> = all(graph, 1).iter().map(|n| text(n, 4)).collect();
    let expected = "Reshape Transpose Conv Reshape InstanceNormalization Reshape Mul Add Tanh MaxPool AveragePool Transpose Reshape Gemm Relu \
                    Gemm Cast ArgMax Gather Identity Softmax Cast Identity";
    let operations = operations.join(" ");
    assert!(operations.ends_with(expected) && !operations.contains("Concat"), "{operations}");
    // Inputs that are normalised: one number for each of them, before pictures are turned.
    let mut normal = network.clone();
    normal["normal"] = serde_json::json!([2.0, 0.5, -0.25, 0.125]);
    artifact.model = serde_json::from_value(normal).unwrap();
    let bytes = onnx::export(&artifact, b"").unwrap();
    let graph = &all(&bytes, 7)[0];
    let more: Vec<String> = all(graph, 1).iter().map(|n| text(n, 4)).collect();
    assert_eq!(more.join(" "), operations.replace(expected, &format!("Mul Add {expected}")));
    // Weights that do not fit are no graph.
    let mut short = network;
    short["weights"] = serde_json::json!([0.5]);
    artifact.model = serde_json::from_value(short).unwrap();
    assert!(onnx::export(&artifact, b"").is_err());
}

/// Pixels go in, and the map to scattering features is in the graph: convolutions of fixed weights, of one size of wavelets or of two, and mirror images where the encoder has them.
#[test]
fn scattering_features_are_in_the_graph() {
    let count = |schema: &str, features: usize| {
        let scores = vec![vec![0.01; features + 1]; 3];
        let artifact = model(schema, "softmax", &[], scores);
        let bytes = onnx::export(&artifact, b"").unwrap();
        let graph = &all(&bytes, 7)[0];
        assert_eq!(names(graph, 11), ["features"]);
        let mut known = names(graph, 11);
        known.extend(all(graph, 5).iter().map(|t| text(t, 8)));
        for node in all(graph, 1) {
            assert!(all(&node, 1).iter().all(|i| known.contains(&String::from_utf8(i.clone()).unwrap())), "{}", text(&node, 4));
            known.push(text(&node, 2));
        }
        let operations: Vec<String> = all(graph, 1).iter().map(|n| text(n, 4)).collect();
        let of = |name: &str| operations.iter().filter(|o| *o == name).count();
        (bytes.len(), of("Conv"), of("InstanceNormalization"), of("Gather"), of("MatMul"))
    };
    let schema = |shape: &str, encoder: &str| {
        let facts = format!("kind = \"image\"\nshape = {shape}\nmax = 255\nencoder = \"{encoder}\"\n");
        format!("[dataset]\nname = \"t\"\n[target]\nclasses = [\"a\", \"b\", \"c\"]\n[features]\n{facts}")
    };
    // Wavelets, and the average of the picture and of what they give; two lists of lines for each, two for margins, and one for names.
    let (size, convolutions, groups, lists, products) = count(&schema("[8, 9]", "scattering"), 4 * 5 * 9);
    assert_eq!((convolutions, groups, lists, products), (3, 2, 9, 1));
    assert!(size < 100_000, "{size}");
    let (size, convolutions, groups, lists, products) = count(&schema("[28, 28]", "scattering"), 7 * 7 * 81);
    assert_eq!((convolutions, groups, lists, products), (7, 4, 17, 1));
    assert!(size < 1_000_000, "{size}");
    // Three colours are mixed, and columns are there once more, the other way round.
    let (size, convolutions, groups, lists, products) = count(&schema("[32, 32, 3]", "mirrored-scattering"), 8 * 8 * 243);
    assert_eq!((convolutions, groups, lists, products), (7, 4, 18, 2));
    assert!(size < 2_000_000, "{size}");
}

#[test]
fn points_are_not_exported() {
    let schema = "[dataset]\nname = \"t\"\n[features.a]\ntype = \"number\"\nmin = 0\nmax = 1\n";
    let artifact = model(schema, "mean", &[], vec![vec![0.1]]);
    assert!(onnx::export(&artifact, b"").unwrap_err().to_string().contains("privfit predict"));
    assert!(affine::coefficients(&artifact).is_err());
    assert_eq!(affine::weights_csv(&artifact).unwrap(), "feature,point\na,0.1\n");
}

/// Coefficients in units give the score that the encoder and the weights give.
#[test]
fn coefficients_in_units_give_the_same_score() {
    use privfit::data::encode::{Encoder, Row};
    use privfit::data::{Cell, Record};
    let schema = MIXED
        .replace("[features.ward]", "[features.pay]\ntype = \"number\"\nmin = 10\nmax = 500\nscale = \"log\"\n[features.ward]");
    let artifact = model(&schema, "squared", &[2.0], vec![vec![0.7, -0.3, 0.2, 0.3, 0.4, 0.5, 0.6]]);
    let encoder = Encoder::new(&artifact.schema, &["value", "pay", "ward", "sex"].map(String::from), false).unwrap();
    let json = affine::coefficients(&artifact).unwrap();
    let score = &json["scores"][0];
    let terms = score["terms"].as_array().unwrap();
    let coefficient = |column: &str, value: Option<&str>| {
        let found = terms.iter().find(|t| t["column"] == column && t["value"].as_str() == value);
        found.map_or(0.0, |t| t["coefficient"].as_f64().unwrap())
    };
    for (value, pay, ward, sex) in [(0.0, 10.0, "a", "f"), (3.5, 77.0, "c", "m"), (4.0, 500.0, "?", "m")] {
        let mut row = Row::default();
        let cells = [Cell::Number(value), Cell::Number(pay), Cell::Text(ward.as_bytes()), Cell::Text(sex.as_bytes())];
        encoder.encode(Record::Cells(&cells), None, &mut row);
        let mut scores = Vec::new();
        artifact.model.scores(&row, &mut scores);
        let by_hand = score["intercept"].as_f64().unwrap()
            + coefficient("value", None) * value
            + coefficient("pay", None) * (pay - 10.0f64).ln_1p()
            + coefficient("ward", Some(ward))
            + coefficient("sex", Some(sex));
        assert!((by_hand - scores[0]).abs() < 1e-12, "{by_hand} {scores:?}");
    }
    let sphere = Artifact::from_bytes(include_bytes!("../corpus/model/objective.json")).unwrap();
    assert!(affine::coefficients(&sphere).unwrap_err().to_string().contains("as ONNX"));
}
