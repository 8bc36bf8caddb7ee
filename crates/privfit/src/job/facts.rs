//! The public facts that every release rests on.

use crate::data::cells::RowForm;
use crate::data::load::{Records, count, load};
use crate::error::{Error, Result};
use crate::ledger::record::Scope;
use crate::schema::{Schema, UnitOfPrivacy};
use privfit_kernel::account::{Adjacency, Target};
use privfit_kernel::{Dataset, Entropy};

/// Schema, number of records, adjacency and what may be spent.
#[derive(Clone)]
pub struct PublicFacts {
    /// Names, bounds, categories, classes, unit of privacy.
    pub schema: Schema,
    /// Rows, or units.
    pub rows: u64,
    /// The number was counted in the files, as a public step.
    pub counted: bool,
    /// What "one record differs" means.
    pub adjacency: Adjacency,
    /// The guarantee to be met.
    pub target: Target,
}

impl PublicFacts {
    /// Checks what is asked for. Without a delta the error says which one is usual.
    pub fn new(
        schema: Schema,
        (rows, counted): (u64, bool),
        adjacency: Adjacency,
        (epsilon, delta): (f64, Option<f64>),
        allow_large_delta: bool,
    ) -> Result<PublicFacts> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::misuse(format!("epsilon is {epsilon}: give a positive number")));
        }
        let usual = 1.0 / (rows.max(2) as f64).powi(2);
        let Some(delta) = delta else {
            return Err(Error::misuse("delta is missing: add ")
                .give("delta", format!("{usual:.1e}"))
                .text(" (1/rows^2), or ")
                .give("delta", "0")
                .text(" for pure privacy"));
        };
        if !(0.0..1.0).contains(&delta) {
            return Err(Error::misuse(format!("delta is {delta}: give a number from 0 to below 1")));
        }
        if large_delta(delta, rows) && !allow_large_delta {
            return Err(Error::misuse(format!(
                "delta is {delta} and there are {rows} rows: a delta of 1/rows or more allows publishing a whole record; give a smaller \
                 one (say {usual:.1e})"
            )));
        }
        Ok(PublicFacts { schema, rows, counted, adjacency, target: Target { epsilon, delta } })
    }

    /// Whether the number of records is the true one; it is private under add-remove, and not counted with a unit column.
    pub(crate) fn rows_known(&self) -> bool {
        self.adjacency != Adjacency::AddRemove && self.schema.unit == UnitOfPrivacy::Row
    }

    /// Whose budget is spent.
    pub fn scope(&self) -> Result<Scope> {
        Scope::of(&self.schema, self.adjacency)
    }

    /// Reads the records. From here on nothing depends on what is in them, except through noise.
    pub fn open(&self, source: &dyn Records, form: RowForm<'_>, entropy: &Entropy) -> Result<Dataset> {
        let data = load(source, &self.schema, form, entropy, self.rows_known().then_some(self.rows))?;
        self.same_count(&data)?;
        Ok(data)
    }

    /// The number is public where it is known, so that a file that changed in between may be noticed.
    pub(crate) fn same_count(&self, data: &Dataset) -> Result<()> {
        match self.rows_known() && self.rows != data.total() as u64 {
            true => Err(Error::misuse(format!(
                "{} rows were declared or counted and {} were read: do not change the files meanwhile",
                self.rows,
                data.total()
            ))),
            false => Ok(()),
        }
    }
}

/// Whether a delta lets a whole record be published: with probability delta each, one of so many is likely to be.
pub(crate) fn large_delta(delta: f64, rows: u64) -> bool {
    delta >= 1.0 / rows.max(1) as f64
}

/// Number of rows or units: declared, or counted in the files as a public step. A declaration that differs is a misuse.
pub fn public_rows(
    schema: &Schema,
    declared: Option<u64>,
    adjacency: Adjacency,
    source: Option<&dyn Records>,
) -> Result<(u64, bool)> {
    // Said by arguments and schema alone, and so before anything is counted or spent.
    source.map_or(Ok(()), |source| source.check(schema))?;
    let declared = match (declared, schema.rows) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::misuse("")
                .naming("rows")
                .text(format!(" is {a} and the schema states {b}: give the same number, or one of them")));
        }
        (a, b) => a.or(b),
    };
    let grouped = schema.unit != UnitOfPrivacy::Row;
    match (declared, source) {
        (None, _) if grouped => {
            Err(Error::misuse("with a unit column the number of units is not counted: add units = N to [dataset], or ")
                .give("rows", "N"))
        }
        (None, _) if adjacency == Adjacency::AddRemove => {
            Err(Error::misuse("under add-remove the number of rows is private: declare a public estimate with ")
                .give("rows", "N"))
        }
        (None, None) => Err(Error::misuse("without data the number of rows must be declared: add ").give("rows", "N")),
        (Some(rows), _) if grouped || adjacency == Adjacency::AddRemove => Ok((rows, false)),
        (Some(rows), None) => Ok((rows, false)),
        (declared, Some(source)) => {
            let counted = match source.share() {
                Some(share) => share.total,
                None => count(source, schema)?,
            };
            match declared {
                Some(rows) if rows != counted => Err(Error::misuse(format!(
                    "{rows} rows are declared and the files have {counted}: the guarantee rests on the true number, correct the declaration"
                ))),
                Some(rows) => Ok((rows, false)),
                None => Ok((counted, true)),
            }
        }
    }
}
