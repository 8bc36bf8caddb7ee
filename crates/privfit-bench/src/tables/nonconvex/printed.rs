//! Numbers that were published, with standard deviations where they have any.

/// A row of tables 4.2 and 4.3: set, epsilon, method; "test error", its deviation, passes, processor seconds, gradient norm, its deviation.
pub(super) type Printed = (&'static str, f64, &'static str, [f64; 6]);

pub(super) const LOGISTIC: &[Printed] = &[
    ("a9a", 0.2, "DP-GD", [0.4155, 0.0107, 20.0, 1.245, 0.0953, 0.0212]),
    ("a9a", 0.2, "DP-AGD", [0.3713, 0.0043, 360.0, 96.21, 0.0437, 0.0020]),
    ("a9a", 0.2, "RRPSGD", [0.4019, 0.0033, 8.0, 39.61, 0.2175, 0.0116]),
    ("a9a", 0.2, "DP-SRM", [0.3579, 0.0009, 4.0, 0.6007, 0.0528, 0.0042]),
    ("a9a", 0.5, "DP-GD", [0.3859, 0.0057, 20.0, 1.261, 0.0866, 0.0129]),
    ("a9a", 0.5, "DP-AGD", [0.3627, 0.0038, 365.0, 95.45, 0.0402, 0.0022]),
    ("a9a", 0.5, "RRPSGD", [0.3861, 0.0028, 10.0, 52.32, 0.1454, 0.0126]),
    ("a9a", 0.5, "DP-SRM", [0.3506, 0.0011, 5.0, 0.7383, 0.0502, 0.0061]),
    ("ijcnn1", 0.2, "DP-GD", [0.3160, 0.0120, 20.0, 0.5180, 0.0184, 0.0024]),
    ("ijcnn1", 0.2, "DP-AGD", [0.2645, 0.0044, 346.0, 90.05, 0.0133, 0.0018]),
    ("ijcnn1", 0.2, "RRPSGD", [0.3110, 0.0106, 8.0, 47.64, 0.0175, 0.0023]),
    ("ijcnn1", 0.2, "DP-SRM", [0.2503, 0.0090, 4.0, 0.4748, 0.0117, 0.0008]),
    ("ijcnn1", 0.5, "DP-GD", [0.2717, 0.0081, 20.0, 0.4990, 0.0171, 0.0024]),
    ("ijcnn1", 0.5, "DP-AGD", [0.2416, 0.0029, 365.0, 94.28, 0.0397, 0.0025]),
    ("ijcnn1", 0.5, "RRPSGD", [0.3033, 0.0110, 10.0, 59.06, 0.0160, 0.0018]),
    ("ijcnn1", 0.5, "DP-SRM", [0.2341, 0.0042, 5.0, 0.4368, 0.0082, 0.0005]),
];

/// Without privacy, in the same tables.
pub(super) const WITHOUT: [(&str, f64); 2] = [("a9a", 0.3346), ("ijcnn1", 0.2096)];

/// Table 5.2: epsilon, then accuracies in per cent for strengths 0, 1, 2, 3.
pub(super) const SMOOTHED: [(f64, [f64; 4]); 5] = [
    (0.10, [73.49, 76.29, 76.31, 77.13]),
    (0.15, [77.03, 79.46, 80.77, 80.81]),
    (0.20, [78.92, 81.56, 82.15, 82.22]),
    (0.25, [81.45, 83.27, 83.65, 82.97]),
    (0.30, [81.74, 84.21, 84.23, 85.11]),
];

/// Tables 5.3 and 5.4: strength, gamma, beta.
pub(super) const FACTORS: [(f64, f64, f64); 5] =
    [(1.0, 0.447, 0.268), (2.0, 0.333, 0.185), (3.0, 0.277, 0.149), (4.0, 0.243, 0.128), (5.0, 0.218, 0.114)];

/// Errors of networks in per cent: set, epsilon, DP-SGD, DP-SRM, without privacy.
pub(super) const NETWORKS: &[(&str, f64, [f64; 3])] = &[
    ("MNIST", 1.2, [5.33, 4.49, 1.0]),
    ("MNIST", 3.0, [3.81, 3.62, 1.0]),
    ("MNIST", 7.0, [2.93, 2.91, 1.0]),
    ("CIFAR-10, layers from CIFAR-100", 2.0, [33.2, 33.2, 18.5]),
    ("CIFAR-10, layers from CIFAR-100", 4.0, [31.2, 31.0, 18.5]),
    ("CIFAR-10, layers from CIFAR-100", 8.0, [29.4, 29.3, 18.5]),
    ("CIFAR-10", 6.0, [51.0, 50.3, 39.5]),
    ("CIFAR-10", 8.0, [50.2, 48.2, 39.5]),
    ("CIFAR-10", 10.0, [49.3, 47.1, 39.5]),
];
