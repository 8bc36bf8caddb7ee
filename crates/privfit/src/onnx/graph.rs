//! A graph that grows node by node. Names are given in order, so that the same model gives the same bytes.

use super::proto::{Element, Message, attribute, bytes, doubles, floats, integers, number_list, text_list, texts, value};

/// Nodes and constants.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    names: usize,
    /// Names of inputs, which no output may have.
    taken: Vec<String>,
}

impl Graph {
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        // No column of a table is called like this.
        format!("privfit:{}_{}", what.to_lowercase(), self.names)
    }

    fn node(&mut self, operator: &str, domain: &str, inputs: &[&str], output: &str, attributes: &[Message]) {
        let named = inputs.iter().fold(Message::default(), |m, i| m.text(1, i)).text(2, output).text(3, output);
        let node = named.text(4, operator).all(5, attributes);
        self.nodes.push(if domain.is_empty() { node } else { node.text(7, domain) });
    }

    /// An input of the user; `width` values to a row.
    pub(crate) fn input(&mut self, name: &str, element: Element, width: usize) {
        self.taken.push(name.into());
        self.inputs.push(value(name, element, Some(width)));
    }

    /// Gives a result its name (with a line below it, if a column has the name already); `width` is none for one value to a row.
    pub(crate) fn output(&mut self, from: &str, name: &str, element: Element, width: Option<usize>) {
        let name = &format!("{name}{}", if self.taken.iter().any(|t| t == name) { "_" } else { "" });
        self.node("Identity", "", &[from], name, &[]);
        self.outputs.push(value(name, element, width));
    }

    /// Doubles of a shape.
    pub(crate) fn constant(&mut self, shape: &[usize], values: &[f64]) -> String {
        let name = self.name("constant");
        self.constants.push(doubles(&name, shape, values));
        name
    }

    /// Floats of a shape.
    pub(crate) fn floats(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.name("floats");
        self.constants.push(floats(&name, shape, values));
        name
    }

    /// One double.
    pub(crate) fn scalar(&mut self, value: f64) -> String {
        self.constant(&[], &[value])
    }

    /// Whole numbers.
    pub(crate) fn integers(&mut self, values: &[i64]) -> String {
        let name = self.name("integers");
        self.constants.push(integers(&name, values));
        name
    }

    /// Whole numbers from 0 to 255.
    pub(crate) fn bytes(&mut self, shape: &[usize], values: &[u8]) -> String {
        let name = self.name("bytes");
        self.constants.push(bytes(&name, shape, values));
        name
    }

    /// Entries of a table along its first dimension.
    pub(crate) fn gather(&mut self, table: &str, places: &str) -> String {
        self.apply_with("Gather", &[table, places], &[attribute("axis", 0)])
    }

    /// One column of a tensor with two dimensions, still with both.
    pub(crate) fn column(&mut self, from: &str, column: usize) -> String {
        let column = self.integers(&[column as i64]);
        self.apply_with("Gather", &[from, &column], &[attribute("axis", 1)])
    }

    /// Sum along a dimension, which is gone then.
    pub(crate) fn sum_along(&mut self, from: &str, axis: i64) -> String {
        let axes = self.integers(&[axis]);
        self.apply_with("ReduceSum", &[from, &axes], &[attribute("keepdims", 0)])
    }

    /// An operation of the main set.
    pub(crate) fn apply(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.apply_with(operator, inputs, &[])
    }

    fn apply_with(&mut self, operator: &str, inputs: &[&str], attributes: &[Message]) -> String {
        let name = self.name(operator);
        self.node(operator, "", inputs, &name, attributes);
        name
    }

    /// An operation with a number at its right side.
    pub(crate) fn with(&mut self, operator: &str, left: &str, right: f64) -> String {
        let right = self.scalar(right);
        self.apply(operator, &[left, &right])
    }

    /// Another type of elements.
    pub(crate) fn cast(&mut self, from: &str, element: Element) -> String {
        self.apply_with("Cast", &[from], &[attribute("to", element as i64)])
    }

    /// Columns side by side.
    pub(crate) fn beside(&mut self, parts: &[&str]) -> String {
        if let [one] = parts {
            return one.to_string();
        }
        self.apply_with("Concat", parts, &[attribute("axis", 1)])
    }

    /// Sum of each row, as a column.
    pub(crate) fn row_sums(&mut self, from: &str) -> String {
        let axes = self.integers(&[1]);
        self.apply_with("ReduceSum", &[from, &axes], &[attribute("keepdims", 1)])
    }

    /// Number of the largest value of each row; the first of equals.
    pub(crate) fn largest(&mut self, from: &str) -> String {
        self.apply_with("ArgMax", &[from], &[attribute("axis", 1), attribute("keepdims", 0)])
    }

    /// Exponentials over their sum, row by row.
    pub(crate) fn softmax(&mut self, from: &str) -> String {
        self.apply_with("Softmax", &[from], &[attribute("axis", 1)])
    }

    /// A column without its second dimension.
    pub(crate) fn flat(&mut self, from: &str) -> String {
        let shape = self.integers(&[-1]);
        self.apply("Reshape", &[from, &shape])
    }

    /// Another shape; the first dimension stays.
    pub(crate) fn reshape(&mut self, from: &str, rest: &[usize]) -> String {
        let shape: Vec<i64> = [0].into_iter().chain(rest.iter().map(|d| *d as i64)).collect();
        let shape = self.integers(&shape);
        self.apply("Reshape", &[from, &shape])
    }

    /// Another shape; -1 stands for what is left.
    pub(crate) fn shaped(&mut self, from: &str, shape: &[i64]) -> String {
        let shape = self.integers(shape);
        self.apply("Reshape", &[from, &shape])
    }

    /// Lines of pictures along a dimension, in an order, some of them more than once.
    pub(crate) fn lines(&mut self, from: &str, lines: &[usize], axis: i64) -> String {
        let lines: Vec<i64> = lines.iter().map(|l| *l as i64).collect();
        let lines = self.integers(&lines);
        self.apply_with("Gather", &[from, &lines], &[attribute("axis", axis)])
    }

    /// The same dimensions in another order.
    pub(crate) fn transpose(&mut self, from: &str, order: &[i64]) -> String {
        self.apply_with("Transpose", &[from], &[number_list("perm", order)])
    }

    /// An operation on the square windows of pictures; `padding` rows and columns of zeros are around them.
    pub(crate) fn windows(&mut self, operator: &str, inputs: &[&str], kernel: usize, stride: usize, padding: usize) -> String {
        let two = |name: &str, x: usize| number_list(name, &[x as i64; 2]);
        let mut attributes = vec![two("kernel_shape", kernel), two("strides", stride)];
        if padding > 0 {
            attributes.push(number_list("pads", &[padding as i64; 4]));
        }
        self.apply_with(operator, inputs, &attributes)
    }

    /// Weighted sums of windows of pictures, which need not be square.
    pub(crate) fn convolution(&mut self, from: &str, weights: &str, sides: [usize; 2], stride: usize) -> String {
        let attributes = [number_list("kernel_shape", &sides.map(|s| s as i64)), number_list("strides", &[stride as i64; 2])];
        self.apply_with("Conv", &[from, weights], &attributes)
    }

    /// The text of each number.
    pub(crate) fn named(&mut self, numbers: &str, values: &[String]) -> String {
        let name = self.name("names");
        self.constants.push(texts(&name, values));
        self.gather(&name, numbers)
    }

    /// The place of each text in a list; -1 for one that is not there.
    pub(crate) fn places(&mut self, from: &str, values: &[String]) -> String {
        let name = self.name("places");
        let numbers: Vec<i64> = (0..values.len() as i64).collect();
        let lists = [text_list("keys_strings", values), number_list("values_int64s", &numbers), attribute("default_int64", -1)];
        self.node("LabelEncoder", "ai.onnx.ml", &[from], &name, &lists);
        name
    }

    /// `GraphProto`.
    pub(crate) fn done(self, name: &str) -> Message {
        let nodes = Message::default().all(1, &self.nodes).text(2, name).all(5, &self.constants);
        nodes.all(11, &self.inputs).all(12, &self.outputs)
    }
}
