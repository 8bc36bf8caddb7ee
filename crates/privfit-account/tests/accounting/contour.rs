//! Compositions by an integral along a line in the complex plane: no grid of losses, no transform.
//!
//! delta(epsilon) = 1/(2 pi) times the integral of M(s) e^(-s epsilon) / (s (1 + s)) over s = theta + i u, M(s) = E[e^(s L)] under the first
//! distribution of the pair, theta > 0.

/// One mechanism, as moments of its loss: under P forwards, of the negative loss under Q backwards.
pub(crate) enum Mechanism {
    Gaussian {
        mu: f64,
    },
    Laplace {
        epsilon: f64,
    },
    Response {
        epsilon: f64,
    },
    /// Points (P weight, Q weight, loss) of a density.
    Points(Vec<(f64, f64, f64)>),
}

type Complex = (f64, f64);

fn multiply(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn exponential(a: Complex) -> Complex {
    let size = a.0.exp();
    (size * a.1.cos(), size * a.1.sin())
}

fn logarithm(a: Complex) -> Complex {
    (0.5 * (a.0 * a.0 + a.1 * a.1).ln(), a.1.atan2(a.0))
}

impl Mechanism {
    /// (1-q) N(0) + q N(a) against (1-q) N(0) + q N(b), standard deviation sigma, for tilts up to theta.
    pub(crate) fn mixture(rate: f64, sigma: f64, a: f64, b: f64, theta: f64) -> Mechanism {
        let inverse = 1.0 / (sigma * sigma);
        // The losses have branch points at pi sigma^2 / |shift| off the real line.
        let widest = a.abs().max(b.abs());
        let step = (sigma / 10.0).min(sigma * sigma / (3.0 * widest));
        let sensitivity = (1.0 + theta) * widest + 11.0 * sigma;
        let n = (sensitivity / step).ceil() as i64;
        let norm = step / (sigma * (2.0 * std::f64::consts::PI).sqrt());
        let points = (-n..=n).map(|i| {
            let x = i as f64 * step;
            let part = |shift: f64| (1.0 - rate) + rate * ((x * shift - 0.5 * shift * shift) * inverse).exp();
            let (p, q) = (part(a), part(b));
            let base = norm * (-0.5 * x * x * inverse).exp();
            (base * p, base * q, (p / q).ln())
        });
        Mechanism::Points(points.filter(|p| p.0 > 1e-305 && p.1 > 1e-305).collect())
    }

    fn moment(&self, s: Complex, forward: bool) -> Complex {
        match self {
            Mechanism::Gaussian { mu } => {
                // e^(s (1 + s) mu^2 / 2)
                let product = multiply(s, (1.0 + s.0, s.1));
                exponential((0.5 * mu * mu * product.0, 0.5 * mu * mu * product.1))
            }
            Mechanism::Laplace { epsilon } => {
                // (e^(s e) (1 + s) + s e^(-(1 + s) e)) / (1 + 2 s)
                let up = multiply(exponential((s.0 * epsilon, s.1 * epsilon)), (1.0 + s.0, s.1));
                let down = multiply(exponential((-(1.0 + s.0) * epsilon, -s.1 * epsilon)), s);
                let (n, d) = ((up.0 + down.0, up.1 + down.1), (1.0 + 2.0 * s.0, 2.0 * s.1));
                let size = d.0 * d.0 + d.1 * d.1;
                multiply(n, (d.0 / size, -d.1 / size))
            }
            Mechanism::Response { epsilon } => {
                let keep = 1.0 / (1.0 + (-epsilon).exp());
                let (up, down) = (exponential((s.0 * epsilon, s.1 * epsilon)), exponential((-s.0 * epsilon, -s.1 * epsilon)));
                (keep * up.0 + (1.0 - keep) * down.0, keep * up.1 + (1.0 - keep) * down.1)
            }
            Mechanism::Points(points) => {
                let (mut re, mut im) = (0.0, 0.0);
                for (p, q, loss) in points {
                    let (weight, loss) = if forward { (p, *loss) } else { (q, -loss) };
                    let size = weight * (s.0 * loss).exp();
                    let (sin, cos) = (s.1 * loss).sin_cos();
                    re += size * cos;
                    im += size * sin;
                }
                (re, im)
            }
        }
    }
}

/// delta of one direction of a composition; none where the integral does not settle.
pub(crate) fn delta(mechanisms: &[(Mechanism, u64)], epsilon: f64, forward: bool) -> Option<f64> {
    let exponent = |s: Complex| {
        mechanisms.iter().fold((-s.0 * epsilon, -s.1 * epsilon), |sum, (mechanism, count)| {
            let log = logarithm(mechanism.moment(s, forward));
            (sum.0 + *count as f64 * log.0, sum.1 + *count as f64 * log.1)
        })
    };
    // The tilt where the integrand is smallest on the real line.
    let height = |t: f64| {
        let theta = t.exp();
        let value = exponent((theta, 0.0)).0 - (theta * (1.0 + theta)).ln();
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let (mut low, mut high) = (-6.0f64, 6.0f64);
    for _ in 0..60 {
        let (a, b) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
        if height(a) < height(b) { high = b } else { low = a }
    }
    let theta = (0.5 * (low + high)).exp();
    let top = exponent((theta, 0.0)).0;
    if !(top.is_finite() && top < 50.0) || theta > 350.0 {
        return None;
    }
    let second = {
        let h = 1e-3 * theta;
        (exponent((theta + h, 0.0)).0 - 2.0 * top + exponent((theta - h, 0.0)).0) / (h * h)
    };
    // Atoms make the integrand rise again and again; only a Gaussian ends that for good.
    let atoms =
        mechanisms.iter().any(|(mechanism, _)| matches!(mechanism, Mechanism::Laplace { .. } | Mechanism::Response { .. }));
    let square: f64 = mechanisms
        .iter()
        .map(|(mechanism, n)| if let Mechanism::Gaussian { mu } = mechanism { mu * mu * *n as f64 } else { 0.0 })
        .sum();
    let end = if atoms { 8.5 / square.sqrt() } else { 0.0 };
    // What wraps around at a distance T must be small: e^(-theta T) against delta, and T many standard deviations.
    let sum = |distance: f64| -> Option<f64> {
        let step = 2.0 * std::f64::consts::PI / distance;
        let (mut total, mut quiet, mut largest) = (0.0, 0, 0.0f64);
        for i in 0..30_000 {
            let s = (theta, step * f64::from(i));
            let value = exponent(s);
            let product = multiply(s, (1.0 + s.0, s.1));
            let size = (value.0 - top).exp();
            let (sin, cos) = value.1.sin_cos();
            let inverse = 1.0 / (product.0 * product.0 + product.1 * product.1);
            let term = size * (cos * product.0 + sin * product.1) * inverse;
            total += if i == 0 { 0.5 * term } else { term };
            largest = largest.max(size * inverse.sqrt());
            quiet = if size * inverse.sqrt() < 1e-15 * largest { quiet + 1 } else { 0 };
            if quiet > 20 && s.1 > end {
                return Some(total * step / std::f64::consts::PI * top.exp());
            }
        }
        None
    };
    let distance = (40.0 / theta).max(30.0 * second.abs().sqrt());
    let (one, two) = (sum(distance)?, sum(1.37 * distance)?);
    ((one / two - 1.0).abs() < 1e-8 && one > 0.0).then_some(two)
}
