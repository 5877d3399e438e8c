//! Records in parts: someone else sums over each part and adds the sums up; here they are checked, and their sources held to one another.

use std::fmt::{self, Debug, Formatter};

use super::{HessianRows, KeyedRequest, Records, Request, Sums};
use crate::design::{Design, RowBounds, Rows};
use crate::exec::Executor;
use crate::loss::Loss;
use crate::unit::Unit;
use crate::{Error, Result};

/// Records whose sums come from elsewhere.
pub struct Parts<'a> {
    n_params: usize,
    n_records: usize,
    bounds: RowBounds,
    intercept: Option<f64>,
    evaluate: &'a (dyn Fn(&Request) -> Result<Sums> + Sync),
    /// That of the rows of the first pass.
    fingerprint: u128,
}

impl<'a> Parts<'a> {
    /// The records that a first pass found, of `n_params` parameters, the intercept included. `evaluate` sums over them with
    /// [`part_sums`] and the key of that pass, and so checks every row of every pass against the same bounds.
    ///
    /// # Errors
    /// [`Error::Empty`].
    pub fn new(
        first: &Sums,
        n_params: usize,
        intercept: Option<f64>,
        bounds: RowBounds,
        evaluate: &'a (dyn Fn(&Request) -> Result<Sums> + Sync),
    ) -> Result<Self> {
        let n_records = first.n_rows;
        if n_records == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: n_records,
                params: n_params,
            });
        }
        Ok(Self {
            n_params,
            n_records,
            bounds,
            intercept,
            evaluate,
            fingerprint: first.fingerprint,
        })
    }

    /// Refuses sums over other rows than those of the first pass: their sensitivity is that of one set of records.
    fn check_rows(&self, sums: &Sums) -> Result<()> {
        if sums.n_rows != self.n_records {
            return Err(Error::RowsChanged(format!(
                "{} rows in this pass and {} in the first",
                sums.n_rows, self.n_records
            )));
        }
        if sums.fingerprint != self.fingerprint {
            return Err(Error::RowsChanged(
                "the same number of rows with different values".into(),
            ));
        }
        Ok(())
    }
}

impl Debug for Parts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("n_params", &self.n_params)
            .field("n_records", &self.n_records)
            .finish_non_exhaustive()
    }
}

impl Records for Parts<'_> {
    fn n_params(&self) -> usize {
        self.n_params
    }

    fn n_records(&self) -> usize {
        self.n_records
    }

    fn n_rows(&self) -> usize {
        self.n_records
    }

    fn bounds(&self) -> &RowBounds {
        &self.bounds
    }

    fn intercept(&self) -> Option<f64> {
        self.intercept
    }

    fn unit(&self) -> Unit {
        Unit::Row
    }

    fn weight_bound(&self) -> Option<f64> {
        None
    }

    fn design(&self) -> Option<&Design<'_>> {
        None
    }

    fn sums(
        &self,
        request: &Request,
        loss: &dyn Loss,
        weights: Option<&[u32]>,
        exec: &Executor<'_>,
    ) -> Result<Sums> {
        if weights.is_some() {
            return Err(Error::Unsupported(
                "resampling requires all rows in memory, got rows in parts".into(),
            ));
        }
        if loss.n_predictors() > 1 {
            return Err(Error::Unsupported(format!(
                "the {} loss requires all rows in memory, got rows in parts",
                loss.name()
            )));
        }
        exec.check()?;
        // Where rows are read anew, a sample of them costs what all of them do.
        let request = match request {
            Request::Risk { params, hessian } if *hessian == HessianRows::Sample => {
                &Request::Risk {
                    params: params.clone(),
                    hessian: HessianRows::All,
                }
            }
            request => request,
        };
        let sums = (self.evaluate)(request)?;
        self.check_rows(&sums)?;
        let expected = request.shape(self.n_params);
        if sums.shape() != expected {
            return Err(Error::Unsupported(format!(
                "the sums of a pass must answer its request, got shapes {:?} for {expected:?}",
                sums.shape()
            )));
        }
        Ok(sums)
    }
}

impl Request {
    /// The shape of the sums that answer it.
    fn shape(&self, dim: usize) -> (usize, Vec<usize>, usize) {
        match self {
            Self::Risk { hessian, .. } if *hessian == HessianRows::None => (dim + 1, vec![], 0),
            Self::Risk { .. } => (dim + 1, vec![dim], 0),
            Self::Moments { .. } => (0, vec![dim, dim], 0),
            Self::CappedSlopes { .. } => (0, vec![dim], 0),
            Self::CappedGradient { .. } => (dim + 1, vec![], 0),
            Self::DoubledGradient { .. } => (0, vec![], dim),
            Self::Lengths => (0, vec![], 0),
        }
    }
}

/// The sums over one part of the records, whose rows are checked first; no rows have empty sums.
///
/// # Errors
/// As [`Design::new`] and [`Records::sums`].
pub fn part_sums(
    keyed: &KeyedRequest,
    rows: Rows<'_>,
    targets: &[f64],
    loss: &dyn Loss,
    intercept: Option<f64>,
    bounds: &RowBounds,
    exec: &Executor<'_>,
) -> Result<Sums> {
    if targets.is_empty() && rows.n_rows() == Some(0) {
        return Ok(Sums::default());
    }
    let design = Design::new(rows, targets, intercept, bounds, exec)?;
    let mut sums = design.sums(&keyed.request, loss, None, exec)?;
    sums.fingerprint = keyed.key.of_rows(&design, exec)?;
    Ok(sums)
}
