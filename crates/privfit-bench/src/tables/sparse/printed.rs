//! Numbers that were published, from the thesis on sparse learning: mean over ten runs and their standard deviation. Its figures
//! have no numbers that could be read off.

/// Column titles of the publications, and what they did at each epsilon of the table; the baseline is the same at all of them.
type Row = (&'static str, &'static [(f64, f64)]);

/// Table 2.2: E2006-TFIDF, half of the mean squared error, delta 0.01, epsilon 2, 4, 6, 8, 10.
const TABLE_2_2: &[Row] = &[
    ("IGHT", &[(0.785, 0.0); 5]),
    ("Frank-Wolfe", &[(1.514, 0.093), (1.320, 0.090), (1.210, 0.084), (1.105, 0.079), (1.094, 0.071)]),
    ("Two stage", &[(1.286, 0.112), (1.072, 0.101), (1.042, 0.082), (0.997, 0.080), (0.986, 0.075)]),
    ("DP-IGHT", &[(1.057, 0.107), (0.890, 0.081), (0.854, 0.073), (0.823, 0.070), (0.810, 0.066)]),
];

/// Table 2.3: RCV1, part of the test rows with the wrong class, delta 0.01, epsilon 2, 4, 6, 8, 10.
const TABLE_2_3: &[Row] = &[
    ("IGHT", &[(0.0625, 0.0); 5]),
    ("Frank-Wolfe", &[(0.1271, 0.0043), (0.1034, 0.0037), (0.0938, 0.0034), (0.0852, 0.0036), (0.0807, 0.0031)]),
    ("Two stage", &[(0.1213, 0.0041), (0.0989, 0.0039), (0.0893, 0.0035), (0.0810, 0.0033), (0.0791, 0.0034)]),
    ("DP-IGHT", &[(0.1168, 0.0038), (0.0956, 0.0035), (0.0841, 0.0037), (0.0797, 0.0030), (0.0762, 0.0032)]),
];

/// Table 3.2, also the second table of the paper: E2006-TFIDF, mean squared error, delta 1e-5, epsilon 0.8, 1.5, 2.5, 3.5, 4.5.
const TABLE_3_2: &[Row] = &[
    ("IGHT", &[(0.8541, 0.0); 5]),
    ("Frank-Wolfe", &[(4.471, 0.239), (2.004, 0.155), (1.535, 0.140), (1.206, 0.095), (1.099, 0.082)]),
    ("Two stage", &[(4.022, 0.159), (1.803, 0.141), (1.326, 0.093), (1.107, 0.103), (1.053, 0.069)]),
    ("DP-IGHT", &[(3.731, 0.207), (1.687, 0.126), (1.304, 0.035), (1.067, 0.051), (0.968, 0.062)]),
    ("DPSL-KT", &[(1.227, 0.110), (1.178, 0.056), (1.065, 0.054), (0.971, 0.031), (0.952, 0.010)]),
];

/// Table 3.3, also the third table of the paper: RCV1, part of the test rows with the wrong class, delta 1e-5, epsilon 2, 4, 6, 8.
const TABLE_3_3: &[Row] = &[
    ("IGHT", &[(0.0645, 0.0); 4]),
    ("Frank-Wolfe", &[(0.1381, 0.0045), (0.1134, 0.0041), (0.0978, 0.0032), (0.0882, 0.0033)]),
    ("Two stage", &[(0.1272, 0.0044), (0.1061, 0.0038), (0.0949, 0.0035), (0.0866, 0.0031)]),
    ("DP-IGHT", &[(0.1179, 0.0035), (0.1026, 0.0036), (0.0922, 0.0032), (0.0824, 0.0029)]),
    ("DPSL-KT", &[(0.1105, 0.0038), (0.0974, 0.0035), (0.0885, 0.0029), (0.0787, 0.0031)]),
];

/// Mean and standard deviation in a table ("2.2" and so on), for a method there, at the i-th of its epsilons.
pub(super) fn find(table: &str, method: &str, i: usize) -> Option<(f64, f64)> {
    let rows = match table {
        "2.2" => TABLE_2_2,
        "2.3" => TABLE_2_3,
        "3.2" => TABLE_3_2,
        "3.3" => TABLE_3_3,
        _ => return None,
    };
    rows.iter().find(|r| r.0 == method)?.1.get(i).copied()
}
