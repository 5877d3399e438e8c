//! Sums over all records, wherever the rows are: in memory here, or in parts that someone else adds up.
//!
//! Whoever minimises a risk asks for sums only. What adds them up may be a [`Design`], or [`Parts`]: chunks of a file, partitions of a
//! cluster. The kernels are the same, and so are the bounds on rounding: partial sums keep what their additions lost.

mod fingerprint;
mod kernels;
mod moved;
mod parts;
mod pass;
mod person_moments;
mod person_pass;
mod residuals;
mod several;
mod sums;

use std::borrow::Cow;
use std::fmt::Debug;

use crate::design::{Design, OnViolation, RowBounds};
use crate::error::check_length;
use crate::exec::Executor;
use crate::linalg::Doubled;
use crate::loss::Loss;
use crate::row_domain::row_norm_bound;
use crate::unit::Unit;
use crate::{Error, Result};

pub use fingerprint::FingerprintKey;
pub use moved::{Moved, Round, Rounding};
pub use parts::{Part, PartPersons, Parts, part_sums};
pub(crate) use several::assembled;
pub use sums::Sums;

/// Which Hessian is summed with a risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HessianRows {
    /// None.
    None,
    /// From all rows: exact.
    All,
    /// From every k-th block of rows, scaled up; exact unless there are many more rows than parameters. A preconditioner.
    Sample,
    /// Risk and Hessian of every k-th block of rows alone, scaled up: a start for a solver.
    SampleAlone,
}

/// Sums over the records that may be requested.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `Σ l`, `Σ l' x` and, where asked for, `Σ l'' x xᵀ`.
    Risk {
        /// `θ`.
        params: Vec<f64>,
        /// The Hessian, if any.
        hessian: HessianRows,
    },
    /// `Σ l'' x xᵀ` and `Σ l'² x xᵀ`, slopes and curvatures held to their suprema over `|u| ≤ R‖θ‖`.
    Moments {
        /// `θ`.
        params: Vec<f64>,
    },
    /// The first of [`Self::Moments`] alone.
    Hessian {
        /// `θ`.
        params: Vec<f64>,
    },
    /// Sums of slopes held to a cap.
    Capped {
        /// Which.
        of: Capped,
        /// `θ`.
        params: Vec<f64>,
        /// The greatest slope that counts.
        cap: f64,
        /// Whether slopes are those at the records' targets; otherwise at targets of 0.
        targets: bool,
    },
    /// `Σ l' x` in doubled precision.
    DoubledGradient {
        /// `θ`.
        point: Vec<Doubled>,
    },
    /// The squared lengths of the shortest and of the longest row, and their number.
    Lengths,
    /// `Σ x xᵀ`, and `Σ y x`.
    SecondMoments,
    /// Records whose moved rows have norms between each radius and the next one.
    MovedCounts {
        /// M, square and row-major: rows become `Mᵀx`.
        map: Vec<f64>,
        /// The radii, which increase.
        radii: Vec<f64>,
    },
    /// Records whose gradients, and whose Hessians, have norms between each bound and the next one. For moved rows.
    DerivativeCounts {
        /// `θ`.
        params: Vec<f64>,
        /// Bounds on the norms of gradients, which increase.
        gradients: Vec<f64>,
        /// Bounds on the norms of Hessians, which increase.
        hessians: Vec<f64>,
    },
    /// The sums of a request over moved rows with weights.
    Moved {
        /// How rows are moved.
        rounding: Rounding,
        /// The request.
        of: Box<Request>,
    },
}

named! {
    /// Sums of slopes held to a cap.
    pub enum Capped {
        /// `Σ min(|l'|, cap)² x xᵀ`.
        Slopes = "capped_slopes",
        /// `Σ c x` and, last, `Σ c²`, c the slope held to the cap.
        Gradient = "capped_gradient",
        /// How many records have slopes near each [level](crate::loss::level) of the cap.
        Levels = "slope_levels",
    }
}

/// Ending of the names of requests with targets of 0.
const AT_0: &str = "_at_0";

/// Numbers whose count stands first, and the rest.
fn counted(numbers: &[f64]) -> Result<(&[f64], &[f64])> {
    let (count, rest) = numbers.split_at_checked(1).ok_or(short(numbers, 1))?;
    let count = sums::count(count)?;
    rest.split_at_checked(count).ok_or(short(rest, count))
}

/// The error for fewer numbers than expected.
fn short(numbers: &[f64], expected: usize) -> Error {
    Error::Length {
        name: "point",
        expected,
        got: numbers.len(),
    }
}

/// The beginning of the names of requests over moved rows.
const MOVED: &str = "moved_";

impl Request {
    /// A name, by which a request travels with the numbers of its [`Request::point`].
    pub fn name(&self) -> Cow<'static, str> {
        let name = match self {
            Self::Moved { of, .. } => return format!("{MOVED}{}", of.name()).into(),
            Self::Risk {
                hessian: HessianRows::None,
                ..
            } => "risk",
            Self::Risk { .. } => "risk_and_hessian",
            Self::Moments { .. } => "moments",
            Self::Hessian { .. } => "hessian",
            Self::Capped { of, targets: true, .. } => of.name(),
            Self::Capped { of, .. } => return format!("{of}{AT_0}").into(),
            Self::DoubledGradient { .. } => "doubled_gradient",
            Self::Lengths => "lengths",
            Self::SecondMoments => "second_moments",
            Self::MovedCounts { .. } => "moved_counts",
            Self::DerivativeCounts { .. } => "derivative_counts",
        };
        name.into()
    }

    /// The point at which sums are asked for: one number for each parameter, two in doubled precision; then the cap of slopes, or the greatest.
    /// For moved rows the number of entries of the map, the map, and the radii, or the same of further maps, the radius, the
    /// greatest length, both limits and the point. For counts of derivatives the number of the bounds before each.
    pub fn point(&self) -> Vec<f64> {
        match self {
            Self::Risk { params, .. } | Self::Moments { params } | Self::Hessian { params } => params.clone(),
            Self::Capped { params, cap, .. } => params.iter().chain([cap]).copied().collect(),
            Self::DoubledGradient { point } => point.iter().flat_map(|p| p.halves()).collect(),
            Self::Lengths | Self::SecondMoments => Vec::new(),
            Self::MovedCounts { map, radii } => [&[map.len() as f64], map.as_slice(), radii.as_slice()].concat(),
            Self::DerivativeCounts {
                params,
                gradients,
                hessians,
            } => [
                &[gradients.len() as f64],
                gradients.as_slice(),
                &[hessians.len() as f64],
                hessians,
                params,
            ]
            .concat(),
            Self::Moved { rounding, of } => {
                let Rounding {
                    map,
                    radius,
                    longest,
                    further,
                    limits: [gradient, hessian],
                } = rounding;
                [
                    &[map.len() as f64],
                    map.as_slice(),
                    &[further.len() as f64],
                    further,
                    &[*radius, *longest, *gradient, *hessian],
                    of.point().as_slice(),
                ]
                .concat()
            }
        }
    }

    /// The request of a name at a point.
    pub fn new(name: &str, mut point: Vec<f64>) -> Result<Self> {
        if let Some(of) = name.strip_prefix(MOVED) {
            return Self::moved(of, &point);
        }
        let of = [Capped::Slopes, Capped::Gradient, Capped::Levels]
            .into_iter()
            .find(|of| of.name() == name.strip_suffix(AT_0).unwrap_or(name));
        if let Some(of) = of {
            // No number is no point: it is refused for its length.
            let cap = point.pop().unwrap_or_default();
            return Ok(Self::Capped {
                of,
                params: point,
                cap,
                targets: !name.ends_with(AT_0),
            });
        }
        let risk = |params, hessian| Ok(Self::Risk { params, hessian });
        match name {
            "risk" => risk(point, HessianRows::None),
            "risk_and_hessian" => risk(point, HessianRows::All),
            "moments" => Ok(Self::Moments { params: point }),
            "hessian" => Ok(Self::Hessian { params: point }),
            "doubled_gradient" => {
                let (pairs, rest) = point.as_chunks();
                check_length("point", point.len() + rest.len(), point.len())?;
                let point = pairs.iter().map(|&[high, low]| Doubled::sum(high, low));
                Ok(Self::DoubledGradient { point: point.collect() })
            }
            "lengths" => Ok(Self::Lengths),
            "second_moments" => Ok(Self::SecondMoments),
            "derivative_counts" => {
                let (gradients, rest) = counted(&point)?;
                let (hessians, params) = counted(rest)?;
                Ok(Self::DerivativeCounts {
                    params: params.to_vec(),
                    gradients: gradients.to_vec(),
                    hessians: hessians.to_vec(),
                })
            }
            _ => Err(Error::Unsupported(format!(
                "a request for sums must be one of the documented names, got {name:?}"
            ))),
        }
    }

    /// The request over moved rows that has the name `of` among them.
    fn moved(of: &str, point: &[f64]) -> Result<Self> {
        let (map, rest) = counted(point)?;
        let map = map.to_vec();
        if of == "counts" {
            let radii = rest.to_vec();
            return Ok(Self::MovedCounts { map, radii });
        }
        let (further, rest) = counted(rest)?;
        let Some((&[radius, longest, gradient, hessian], point)) = rest.split_first_chunk() else {
            return Err(short(rest, 4));
        };
        Ok(Self::Moved {
            rounding: Rounding {
                map,
                radius,
                longest,
                further: further.to_vec(),
                limits: [gradient, hessian],
            },
            of: Box::new(Self::new(of, point.to_vec())?),
        })
    }

    /// Number of parameters that its point implies.
    fn n_params(&self) -> Option<usize> {
        match self {
            Self::Risk { params, .. }
            | Self::Moments { params }
            | Self::Hessian { params }
            | Self::Capped { params, .. }
            | Self::DerivativeCounts { params, .. } => Some(params.len()),
            Self::DoubledGradient { point } => Some(point.len()),
            Self::Moved { of, .. } => of.n_params(),
            Self::Lengths | Self::SecondMoments | Self::MovedCounts { .. } => None,
        }
    }
}

/// Request to every part in one pass, with the key that all passes of a fit share.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedRequest {
    /// Sums that are requested.
    pub request: Request,
    /// By which the rows of all passes are compared.
    pub key: FingerprintKey,
}

/// Checked records that can be summed over.
pub trait Records: Debug + Sync {
    /// Number of parameters, the intercept included.
    fn n_params(&self) -> usize;

    /// Number of records.
    fn n_records(&self) -> usize;

    /// Number of terms in a sum over them: fewer where equal records were merged.
    fn n_rows(&self) -> usize;

    /// The public bounds that every row is checked against.
    fn bounds(&self) -> &RowBounds;

    /// R such that rows x far out weigh less: their weights w have `w‖x‖ ≤ R` and `w‖x‖² ≤ R²`. `None` where none does.
    fn weighed_to(&self) -> Option<f64> {
        let bounds = self.bounds();
        (bounds.on_violation == OnViolation::Weight).then(|| row_norm_bound(bounds.rows.norm(), self.intercept()))
    }

    /// The constant appended to each row.
    fn intercept(&self) -> Option<f64>;

    /// Protected unit, which [`Self::n_records`] counts.
    fn unit(&self) -> Unit;

    /// The bound by which the weights of records were divided; `None` without weights.
    fn weight_bound(&self) -> Option<f64>;

    /// The rows themselves, where they are in memory.
    fn design(&self) -> Option<&Design<'_>>;

    /// One pass: the sums that are asked for; `weights` are for rows in memory alone, in place of their multiplicities.
    fn sums(&self, request: &Request, loss: &dyn Loss, weights: Option<&[u32]>, exec: &Executor<'_>) -> Result<Sums>;
}

impl Records for Design<'_> {
    fn n_params(&self) -> usize {
        Design::n_params(self)
    }

    fn n_records(&self) -> usize {
        Design::n_records(self)
    }

    fn n_rows(&self) -> usize {
        Design::n_rows(self)
    }

    fn bounds(&self) -> &RowBounds {
        Design::bounds(self)
    }

    fn intercept(&self) -> Option<f64> {
        Design::intercept(self)
    }

    fn unit(&self) -> Unit {
        Design::unit(self)
    }

    fn weight_bound(&self) -> Option<f64> {
        Design::weight_bound(self)
    }

    fn design(&self) -> Option<&Design<'_>> {
        Some(self)
    }

    fn sums(&self, request: &Request, loss: &dyn Loss, weights: Option<&[u32]>, exec: &Executor<'_>) -> Result<Sums> {
        kernels::sums(self, request, loss, weights, exec)
    }
}

/// The rows in memory, for a computation that sums cannot serve.
pub fn rows_in_memory<'a>(records: &'a dyn Records, what: &str) -> Result<&'a Design<'a>> {
    records.design().ok_or_else(|| {
        Error::Unsupported(format!(
            "{what} requires all rows in memory, got rows in parts (pass them as one array)"
        ))
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod person_tests;

#[cfg(test)]
mod weight_tests;

#[cfg(test)]
mod coded_tests;
