//! Records in parts: someone else sums over each part and adds the sums up; here they are checked, and their sources held to one another.

use std::fmt::{self, Debug, Formatter};

use super::{Capped, HessianRows, KeyedRequest, Records, Request, Sums};
use crate::design::{Design, Persons, RowBounds, Rows};
use crate::error::check_length;
use crate::exec::Executor;
use crate::loss::{LEVELS, Loss, pairs};
use crate::unit::{Unit, Weighting};
use crate::{Error, Result};

/// Records whose sums come from elsewhere.
pub struct Parts<'a> {
    n_params: usize,
    unit: Unit,
    weight_bound: Option<f64>,
    bounds: RowBounds,
    intercept: Option<f64>,
    evaluate: &'a (dyn Fn(&Request) -> Result<Sums> + Sync),
    /// The sums of the first pass, which say how many rows and records there are.
    first: Sums,
}

impl<'a> Parts<'a> {
    /// The records that a first pass found, of `n_params` parameters, the intercept included. `evaluate` sums over them with
    /// [`part_sums`] and the key of that pass, and so checks every row of every pass against the same bounds.
    pub fn new(
        first: &Sums,
        n_params: usize,
        intercept: Option<f64>,
        bounds: RowBounds,
        evaluate: &'a (dyn Fn(&Request) -> Result<Sums> + Sync),
    ) -> Result<Self> {
        let Sums { n_rows, n_records, .. } = *first;
        if n_records == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: n_rows,
                params: n_params,
            });
        }
        Ok(Self {
            n_params,
            unit: Unit::Row,
            weight_bound: None,
            bounds,
            intercept,
            evaluate,
            first: first.clone(),
        })
    }

    /// The same records as those of a unit, none of whom has rows in two parts of the first pass, and with weights under a bound, as
    /// [`part_sums`] counts them. Whoever makes the first pass must have compared the persons of its parts.
    pub fn counted(mut self, unit: Unit, weight_bound: Option<f64>) -> Self {
        self.unit = unit;
        self.weight_bound = weight_bound;
        self
    }
}

impl Debug for Parts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("n_params", &self.n_params)
            .field("n_records", &self.first.n_records)
            .finish_non_exhaustive()
    }
}

impl Records for Parts<'_> {
    fn n_params(&self) -> usize {
        self.n_params
    }

    fn n_records(&self) -> usize {
        self.first.n_records
    }

    fn n_rows(&self) -> usize {
        self.first.n_rows
    }

    fn bounds(&self) -> &RowBounds {
        &self.bounds
    }

    fn intercept(&self) -> Option<f64> {
        self.intercept
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn weight_bound(&self) -> Option<f64> {
        self.weight_bound
    }

    fn design(&self) -> Option<&Design<'_>> {
        None
    }

    fn sums(&self, request: &Request, loss: &dyn Loss, weights: Option<&[u32]>, exec: &Executor<'_>) -> Result<Sums> {
        if weights.is_some() {
            return Err(Error::Unsupported(
                "resampling requires all rows in memory, got rows in parts".into(),
            ));
        }
        exec.check()?;
        // Where rows are read anew, a sample of them costs what all of them do.
        let request = match request {
            Request::Risk {
                params,
                hessian: HessianRows::Sample | HessianRows::SampleAlone,
            } => &Request::Risk {
                params: params.clone(),
                hessian: HessianRows::All,
            },
            request => request,
        };
        let sums = (self.evaluate)(request)?;
        sums.check_same_rows(&self.first)?;
        let expected = request.shape(self.n_params, loss.n_predictors(), self.unit);
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
    /// The shape of the sums that answer it, for rows of so many columns and a loss of so many linear predictors: a matrix has a block for
    /// each pair of these, but the squared gradients of persons are summed as one.
    fn shape(&self, width: usize, n_predictors: usize, unit: Unit) -> (usize, Vec<usize>, usize) {
        let dim = n_predictors * width;
        let blocks = vec![width; pairs(n_predictors).count()];
        match self {
            Self::Risk { hessian, .. } if *hessian == HessianRows::None => (dim + 1, vec![], 0),
            Self::Risk { .. } => (dim + 1, blocks, 0),
            Self::Moments { .. } if unit == Unit::Row => (0, blocks.repeat(2), 0),
            Self::Moments { .. } => (0, [blocks, vec![dim]].concat(), 0),
            Self::Hessian { .. } => (0, blocks, 0),
            Self::Capped { of, .. } => match of {
                Capped::Slopes => (0, vec![dim], 0),
                Capped::Gradient => (dim + 1, vec![], 0),
                Capped::Levels => (LEVELS, vec![], 0),
            },
            Self::DoubledGradient { .. } => (0, vec![], dim),
            Self::Lengths => (0, vec![], 0),
            Self::SecondMoments => (width, vec![width], 0),
            Self::MovedCounts { radii, .. } => (radii.len(), vec![], 0),
            Self::DerivativeCounts {
                gradients, hessians, ..
            } => (gradients.len() + hessians.len(), vec![], 0),
            Self::Moved { of, .. } => of.shape(width, n_predictors, unit),
        }
    }
}

/// Some of the rows, with their targets, and how much they count.
#[derive(Debug)]
pub struct Part<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// A target for each.
    pub targets: &'a [f64],
    /// Whose they are, where the records are persons.
    pub persons: Option<PartPersons<'a>>,
    /// Weights of the records, where they have weights.
    pub weights: Option<(&'a [f64], Weighting)>,
}

/// Whose the rows of a part are.
#[derive(Debug, Clone, Copy)]
pub struct PartPersons<'a> {
    /// The persons of the rows, by numbers from 0 of which none is left out.
    pub numbers: &'a [i64],
    /// 128 bits for each row that stand for its person in all parts and passes, and in no other fit.
    pub tags: &'a [[u64; 2]],
    /// By which rule their rows count.
    pub unit: Unit,
}

impl<'a> Part<'a> {
    /// Rows that are records of their own, each of which counts once.
    pub fn new(rows: Rows<'a>, targets: &'a [f64]) -> Self {
        Self {
            rows,
            targets,
            persons: None,
            weights: None,
        }
    }

    fn is_empty(&self) -> bool {
        let none = self.persons.is_none_or(|persons| persons.numbers.is_empty())
            && self.weights.is_none_or(|(weights, _)| weights.is_empty());
        none && self.targets.is_empty() && self.rows.n_rows() == Some(0)
    }
}

/// The sums over one part of the records, whose rows are checked first; no rows have empty sums. A person counts as if it had no rows
/// in other parts.
pub fn part_sums(
    keyed: &KeyedRequest,
    part: Part<'_>,
    loss: &dyn Loss,
    intercept: Option<f64>,
    bounds: &RowBounds,
    exec: &Executor<'_>,
) -> Result<Sums> {
    if part.is_empty() {
        return Ok(Sums::default());
    }
    let mut design = Design::new(part.rows, part.targets, intercept, bounds, exec)?;
    if let Some(persons) = part.persons {
        check_length("the tags of persons", design.n_rows(), persons.tags.len())?;
        design = design.of_persons(Persons::new(persons.numbers, persons.unit, exec)?)?;
    }
    if let Some((weights, weighting)) = part.weights {
        design = design.weighted(weights, weighting)?;
    }
    let mut sums = design.sums(&keyed.request, loss, None, exec)?;
    sums.n_records = design.n_records();
    let tags = part.persons.map(|persons| persons.tags);
    sums.fingerprint = keyed.key.of_rows(&design, tags, exec)?;
    Ok(sums)
}
