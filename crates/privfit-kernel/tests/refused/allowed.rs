//! The ordinary path compiles: what the other files do wrong is what stops them.
use privfit_kernel::account::Event;
use privfit_kernel::engine::Threads;
use privfit_kernel::*;

fn main() -> privfit_kernel::Result<()> {
    let entropy = Entropy::system()?;
    let shape = RowShape { dimension: 2, row_norm: 1.0, sparse: false, rows_per_unit: None };
    let mut rows = DatasetBuilder::new(&entropy, shape)?;
    rows.row(&[0.1, 0.2], 1.0);
    let (data, engine) = (rows.build(), Threads::new(1));
    let sum_of_rows = Contribution {
        name: "rows",
        dimension: 2,
        parameters: vec![],
        add: |_, unit, _, out| unit.each(0, |i, x| out.add(i, x)),
    };
    let mechanism = Gaussian::new(1.0, 1.0, 1)?;
    let planned: Event = mechanism.event(2);
    let mut run = Run::begin(&data, &engine, &entropy, &planned)?;
    let out = run.at(&mechanism, |run, scale| {
        let noise = run.draw(&scale, 2)?;
        let sum = run.everyone()?.sum(&noise, &sum_of_rows)?;
        run.release(noise, &sum)
    })?;
    let released: Released<Vec<f64>> = run.close(out)?;
    assert_eq!(released.value().len(), 2);
    Ok(())
}
