//! Records whose rows are moved by a linear map and weighted by their length: in memory once for all sums, in parts anew in each pass.

use super::{Records, Request, Sums};
use crate::Result;
use crate::design::{self, Design, OnViolation, RowBounds};
use crate::exec::Executor;
use crate::linalg::vector;
use crate::loss::Loss;
use crate::row_domain::RowDomain;
use crate::unit::Unit;

/// Moved rows, of any length.
#[derive(Debug)]
pub enum Moved<'r> {
    /// Rows in memory.
    Here(design::Moved<'r>),
    /// Rows that each pass moves where they lie.
    InParts {
        /// Rows before they are moved.
        records: &'r dyn Records,
        /// M, square and row-major.
        map: Vec<f64>,
    },
}

impl<'r> Moved<'r> {
    /// Rows `Mᵀx` of all rows x with their intercepts; M is square and row-major.
    pub fn new(records: &'r dyn Records, map: &[f64], exec: &Executor<'_>) -> Result<Self> {
        match records.design() {
            Some(design) => Ok(Self::Here(design.moved(map, exec)?)),
            None => Ok(Self::InParts {
                records,
                map: map.to_vec(),
            }),
        }
    }

    /// Records with a norm between each of the radii and the next one; see [`design::Moved::counts`]. Not private.
    pub fn counts(&self, radii: &[f64], loss: &dyn Loss, exec: &Executor<'_>) -> Result<Vec<f64>> {
        let counts = match self {
            Self::Here(moved) => moved.counts(radii),
            Self::InParts { records, map } => {
                let (map, radii) = (map.clone(), radii.to_vec());
                let request = Request::MovedCounts { map, radii };
                records.sums(&request, loss, None, exec)?.slopes
            }
        };
        Ok(counts.values().collect())
    }

    /// The moved rows with weights; see [`design::Moved::within`].
    pub fn within(self, radius: f64, longest: f64) -> Round<'r> {
        match self {
            Self::Here(moved) => Round::Here {
                design: Box::new(moved.within(radius, longest)),
                radius,
            },
            Self::InParts { records, map } => Round::InParts {
                records,
                rounding: Rounding {
                    map,
                    radius,
                    longest,
                    further: Vec::new(),
                    limits: [f64::INFINITY; 2],
                },
                bounds: RowBounds {
                    rows: RowDomain::Ball(longest),
                    targets: records.bounds().targets,
                    on_violation: OnViolation::Error,
                },
            },
        }
    }
}

/// How rows are moved, and how much those far out weigh.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounding {
    /// M, square and row-major: rows become `Mᵀx`.
    pub map: Vec<f64>,
    /// The radius beyond which rows weigh less.
    pub radius: f64,
    /// No moved row is longer.
    pub longest: f64,
    /// Maps that move the weighted rows further, one after another, each as large as the first.
    pub further: Vec<f64>,
    /// Norms that the gradient and the Hessian of no record exceed.
    pub limits: [f64; 2],
}

impl Rounding {
    /// The rows of a design, moved and weighted, with limits.
    pub(super) fn of<'d>(&self, design: &'d Design<'d>, exec: &Executor<'_>) -> Result<Design<'d>> {
        let moved = design.moved(&self.map, exec)?;
        let mut round = moved.within(self.radius, self.longest);
        for map in self.further.chunks(self.map.len().max(1)) {
            round = round.moved_further(map, exec)?;
        }
        round.limit(self.limits[0], self.limits[1]);
        Ok(round)
    }
}

/// Moved rows with weights.
#[derive(Debug)]
pub enum Round<'r> {
    /// Rows in memory.
    Here {
        /// The rows.
        design: Box<Design<'r>>,
        /// To which the weights hold them.
        radius: f64,
    },
    /// Rows that each pass moves where they lie.
    InParts {
        /// Rows before they are moved.
        records: &'r dyn Records,
        /// How they are moved.
        rounding: Rounding,
        /// Bounds that the moved rows obey.
        bounds: RowBounds,
    },
}

impl Round<'_> {
    /// The rows moved once more, with the weights that they have, and without limits.
    pub fn moved_further(self, map: &[f64], exec: &Executor<'_>) -> Result<Self> {
        Ok(match self {
            Self::Here { design, radius } => Self::Here {
                design: Box::new(design.moved_further(map, exec)?),
                radius: radius * vector::norm(map),
            },
            Self::InParts {
                records,
                mut rounding,
                mut bounds,
            } => {
                rounding.further.extend_from_slice(map);
                rounding.limits = [f64::INFINITY; 2];
                bounds.rows = RowDomain::Ball((bounds.rows.norm() * vector::norm(map)).min(f64::MAX));
                Self::InParts {
                    records,
                    rounding,
                    bounds,
                }
            }
        })
    }

    /// Bounds the norms of gradients and Hessians of the rows from now on; see [`Design::limit`].
    pub fn limit(&mut self, gradient: f64, hessian: f64) {
        match self {
            Self::Here { design, .. } => design.limit(gradient, hessian),
            Self::InParts { rounding, .. } => rounding.limits = [gradient, hessian],
        }
    }

    /// Records with a gradient, and a Hessian, between each bound and the next one; see [`Design::counts_of_derivatives`]. Not private.
    pub fn counts_of_derivatives(
        &self,
        loss: &dyn Loss,
        params: &[f64],
        [gradients, hessians]: [&[f64]; 2],
        exec: &Executor<'_>,
    ) -> Result<[Vec<f64>; 2]> {
        let request = Request::DerivativeCounts {
            params: params.to_vec(),
            gradients: gradients.to_vec(),
            hessians: hessians.to_vec(),
        };
        let counts = self.sums(&request, loss, None, exec)?.slopes;
        let mut of_gradients: Vec<f64> = counts.values().collect();
        let of_hessians = of_gradients.split_off(gradients.len().min(of_gradients.len()));
        Ok([of_gradients, of_hessians])
    }

    /// The records that count, of either kind.
    fn records(&self) -> &dyn Records {
        match self {
            Self::Here { design, .. } => &**design,
            Self::InParts { records, .. } => *records,
        }
    }
}

impl Records for Round<'_> {
    fn n_params(&self) -> usize {
        self.records().n_params()
    }

    fn n_records(&self) -> usize {
        self.records().n_records()
    }

    fn n_rows(&self) -> usize {
        self.records().n_rows()
    }

    fn bounds(&self) -> &RowBounds {
        match self {
            Self::Here { design, .. } => design.bounds(),
            Self::InParts { bounds, .. } => bounds,
        }
    }

    fn weighed_to(&self) -> Option<f64> {
        Some(match self {
            Self::Here { radius, .. } => *radius,
            Self::InParts { rounding, .. } => {
                let maps = rounding.further.chunks(rounding.map.len().max(1));
                rounding.radius * maps.map(vector::norm).product::<f64>()
            }
        })
    }

    fn intercept(&self) -> Option<f64> {
        None
    }

    fn unit(&self) -> Unit {
        self.records().unit()
    }

    fn weight_bound(&self) -> Option<f64> {
        self.records().weight_bound()
    }

    fn design(&self) -> Option<&Design<'_>> {
        self.records().design()
    }

    fn sums(&self, request: &Request, loss: &dyn Loss, weights: Option<&[u32]>, exec: &Executor<'_>) -> Result<Sums> {
        match self {
            Self::Here { design, .. } => design.sums(request, loss, weights, exec),
            Self::InParts { records, rounding, .. } => {
                let (rounding, of) = (rounding.clone(), Box::new(request.clone()));
                records.sums(&Request::Moved { rounding, of }, loss, weights, exec)
            }
        }
    }
}
