//! Only a closed run makes something `Released`.
use privfit_kernel::account::Event;
use privfit_kernel::{Numerics, Released};

fn forge() -> Released<f64> {
    Released { value: 1.0, event: Event::Compose(vec![]), executed: Event::Compose(vec![]), numerics: Numerics::Exact, order_dependent: false }
}

fn main() {}
