//! The public choices of a fit, and which of them go together.

use std::sync::Arc;

use crate::error::check_positive;
use crate::linalg::check_matrix_dim;
use crate::loss::Loss;
use crate::privacy::{Budget, Calibration, Neighbors, Perturbation, Split};
use crate::row_domain::RowDomain;
use crate::spec::Terms;
use crate::unit::Unit;
use crate::{Error, Result};

/// Which moments are released for the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// Hessian and gradient covariance as one query.
    Joint,
    /// The same, and level totals, whose noise takes the place of the Hessian's where they say more (docs/proofs/intervals.md, "Level
    /// totals").
    Levels,
    /// Two queries.
    Separate,
    /// None: the whole budget goes to the coefficients, and there are no intervals.
    None,
}

/// A noise family that the caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseKind {
    /// Spherical Laplace.
    SphericalLaplace,
    /// Laplace in the shape of the rows' blocks.
    ShapedLaplace,
    /// Gaussian in the metric of the rows' blocks.
    ShapedGaussian,
    /// Gaussian.
    Gaussian,
}

/// How objective perturbation pays for the Jacobian of the map from the noise to the minimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// `ln(1+κ)` (Wang, Kifer & Lee); a λ that is too small is refused.
    Standard,
    /// Nothing: for losses whose curvature vanishes at the greatest slope, a λ of at least [`offset_l2_strength`] leaves the
    /// Jacobian to what the shift does not take (`docs/proofs/newton_pure.md`).
    ///
    /// [`offset_l2_strength`]: crate::privacy::DataBounds::offset_l2_strength
    Offset,
    /// `2 ln(1+κ)`, and more regularisation where that is too much (Chaudhuri, Monteleoni & Sarwate 2011).
    Cms11,
}

/// Choices of the caller; [`super::Spec::new`] validates them.
#[derive(Debug, Clone)]
pub struct Choices {
    /// Terms that all releases of sums have.
    pub terms: Terms,
    /// Columns of the data, without the intercept.
    pub n_columns: usize,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Where rows lie, without the intercept.
    pub rows: RowDomain,
    /// Loss.
    pub loss: Arc<dyn Loss>,
    /// λ; 0 only for a loss that declares strong convexity.
    pub l2_strength: f64,
    /// W: the parameters are those of the ball ‖θ‖ ≤ W; `None`: all.
    pub radius: Option<f64>,
    /// Total budget.
    pub budget: Budget,
    /// Objective or output perturbation.
    pub perturbation: Perturbation,
    /// How objective perturbation shares its ε with the Jacobian.
    pub variant: Variant,
    /// Whether output perturbation moves its answer into the ball.
    pub project: bool,
    /// Noise of the coefficients; `None`: the one that fits the budget.
    pub noise: Option<NoiseKind>,
    /// Shares of the budget.
    pub split: Option<Split>,
    /// Moments.
    pub moments: Moments,
    /// Share of the budget that is left for other releases at the released parameters, in [0, 1); only without moments.
    pub reserve: f64,
    /// Projection of the released moments.
    pub projection: Projection,
    /// Tight constants or the paper's.
    pub calibration: Calibration,
}

impl Choices {
    /// Number of parameters, the intercept included: a block for each linear predictor of the loss.
    pub fn n_params(&self) -> usize {
        self.loss.n_predictors() * (self.n_columns + usize::from(self.intercept.is_some()))
    }

    /// Whether the gradients are those of a likelihood of independent records: neither those of persons' rows, which are dependent, nor
    /// weighted ones are.
    pub fn is_likelihood(&self) -> bool {
        self.loss.is_likelihood() && self.terms.is_of_rows()
    }
}

named! {
    /// How the noise in the released matrices is treated.
    pub enum Projection {
        /// Eigenvalues below λ become λ.
        Floor = "floor",
        /// Eigenvalues below λ + `r_H` become λ: what noise alone can raise is not believed.
        Cautious = "cautious",
        /// The default: [`Projection::NoiseAware`], but the paper's method projects at the floor.
        Auto = "auto",
        /// None of the matrices is projected: the law of the error counts their noise.
        NoiseAware = "noise_aware",
    }
}

impl Projection {
    /// Treatment that [`Projection::Auto`] stands for.
    pub fn decided(self) -> Self {
        match self {
            Self::Auto => Self::NoiseAware,
            decided => decided,
        }
    }
}

/// Refuses numbers that are out of range.
pub(super) fn check_scalars(c: &Choices) -> Result<()> {
    let strength = (c.loss.curvature_floor() == 0.0).then_some(("l2_strength", c.l2_strength));
    let scale = c.intercept.map(|s| ("intercept", s));
    let radius = c.radius.map(|w| ("radius", w));
    let optional = [strength, scale, radius].into_iter().flatten();
    c.rows.check_columns(c.n_columns)?;
    for (name, value) in [("row_norm", c.rows.norm())].into_iter().chain(optional) {
        check_positive(name, value)?;
    }
    let params = c.n_params();
    if c.moments != Moments::None {
        check_matrix_dim(params)?;
    }
    if c.terms.n_samples == 0 || params == 0 {
        return Err(Error::Empty {
            rows: c.terms.n_samples,
            params,
        });
    }
    Ok(())
}

/// The paper's method: two matrices released apart, both projected at λ, shares (.5, .25, .25).
pub(super) fn apply_paper(c: &mut Choices) -> Result<()> {
    if matches!(c.projection, Projection::Cautious | Projection::NoiseAware) {
        return Err(Error::Unsupported(format!(
            "calibration=\"paper\" requires projection=\"floor\", got projection=\"{}\" (use projection=\"floor\" or \
            calibration=\"tight\")",
            c.projection.name()
        )));
    }
    c.projection = Projection::Floor;
    if c.moments == Moments::Joint {
        c.moments = Moments::Separate;
    }
    if c.split.is_none() && c.moments != Moments::None {
        c.split = Some(Split::PAPER);
    }
    Ok(())
}

/// Refuses what no mechanism offers, naming what works.
pub(super) fn check_combination(c: &Choices) -> Result<()> {
    let unsupported = |message: &str| Err(Error::Unsupported(message.into()));
    check_domain_choices(c)?;
    check_several(c)?;
    check_unit(c)?;
    if c.moments == Moments::Levels {
        check_levels(c)?;
    }
    if c.moments == Moments::None && c.split.is_some() {
        return unsupported(
            "split must be None with moments=\"none\", because the coefficients then receive the whole budget, got a split",
        );
    }
    if !(c.reserve >= 0.0 && c.reserve < 1.0) || (c.reserve > 0.0 && c.moments != Moments::None) {
        return Err(Error::OutOfRange {
            name: "reserve",
            rule: ">= 0 and < 1, and 0 where moments are released",
            value: c.reserve,
        });
    }
    if c.variant == Variant::Cms11 && c.perturbation == Perturbation::Output {
        return unsupported(
            "variant=\"cms11\" requires mechanism=\"objective\", got mechanism=\"output\" (use variant=\"standard\")",
        );
    }
    if c.project && c.perturbation == Perturbation::Objective {
        return unsupported(
            "project=True requires mechanism=\"output\", got mechanism=\"objective\", whose estimate is already in the ball \
            (omit project)",
        );
    }
    if c.variant == Variant::Cms11 && matches!(c.budget, Budget::Approx { .. }) {
        return unsupported(
            "variant=\"cms11\" requires PureDP or ZCDP, because its proof covers only Laplace noise, got ApproxDP",
        );
    }
    match c.noise {
        Some(NoiseKind::ShapedLaplace) => check_shaped(c, false)?,
        Some(NoiseKind::ShapedGaussian) => check_shaped(c, true)?,
        _ => {}
    }
    match (c.perturbation, c.budget, c.noise) {
        (Perturbation::Objective, Budget::Approx { .. }, Some(NoiseKind::SphericalLaplace)) => unsupported(
            "objective perturbation under ApproxDP takes noise=\"gaussian\", got noise=\"spherical_laplace\": use PureDP or ZCDP",
        ),
        (Perturbation::Objective, Budget::Pure { .. } | Budget::Zcdp { .. }, Some(NoiseKind::Gaussian)) => unsupported(
            "objective perturbation under PureDP and ZCDP takes noise=\"spherical_laplace\", or \"shaped_laplace\" for rows in blocks, got noise=\"gaussian\": use ApproxDP",
        ),
        (Perturbation::Objective, Budget::Approx { .. }, _)
            if c.calibration == Calibration::Paper && c.terms.neighbors == Neighbors::ReplaceOne =>
        {
            unsupported(
                "calibration=\"paper\" of Gaussian objective perturbation (Kifer, Smith & Thakurta) is proved for one record added or removed, \
                 and adds too little noise for neighbors=\"replace_one\", got neighbors=\"replace_one\": use neighbors=\"add_remove\" or calibration=\"tight\"",
            )
        }
        (Perturbation::Output, Budget::Pure { .. }, Some(NoiseKind::Gaussian)) => unsupported(
            "output perturbation under PureDP takes noise=\"spherical_laplace\", got noise=\"gaussian\": use ZCDP or ApproxDP",
        ),
        (Perturbation::Output, Budget::Zcdp { .. } | Budget::Approx { .. }, Some(NoiseKind::SphericalLaplace)) => {
            unsupported(
                "output perturbation under ZCDP and ApproxDP takes noise=\"gaussian\", got noise=\"spherical_laplace\": use PureDP",
            )
        }
        _ => Ok(()),
    }
}

/// Refuses a loss of several linear predictors where a proof is one of a single one (docs/proofs/multinomial.md).
fn check_several(c: &Choices) -> Result<()> {
    if c.loss.n_predictors() == 1 {
        return Ok(());
    }
    let got = if c.radius.is_some() {
        "a radius (use radius=None)"
    } else if c.calibration == Calibration::Paper {
        "calibration=\"paper\" (use calibration=\"tight\")"
    } else if c.variant == Variant::Cms11 {
        "variant=\"cms11\" (use variant=\"standard\")"
    } else if !c.rows.is_ball() {
        "rows in blocks (use a bound on their norm)"
    } else if c.reserve > 0.0 {
        "a report for each record"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported(format!(
        "the {} loss does not support {got}",
        c.loss.name()
    )))
}

/// Refuses persons and weights where the proof is one of single rows that count once (docs/persons.md, "What is refused").
fn check_unit(c: &Choices) -> Result<()> {
    let what = match (c.terms.unit, c.terms.weighting) {
        (Unit::Row, None) => return Ok(()),
        (Unit::Row, Some(_)) => "weights",
        _ => "persons",
    };
    let got = if c.calibration == Calibration::Paper {
        "calibration=\"paper\", whose constants assume one row of weight 1 for each record (use calibration=\"tight\")"
    } else if c.variant == Variant::Cms11 {
        "variant=\"cms11\" (use variant=\"standard\")"
    } else if c.loss.kinked() {
        "the hinge loss (use huber_hinge or smooth_hinge)"
    } else if c.loss.curvature_floor() > 0.0 {
        "a loss with strong_convexity"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported(format!("a fit with {what} does not support {got}")))
}

/// Refuses level totals where their law is not one of these intervals.
fn check_levels(c: &Choices) -> Result<()> {
    let got = if c.rows.is_ball() {
        "rows in a ball (pass rows with blocks)"
    } else if c.intercept.is_none() {
        "no intercept"
    } else if !matches!(c.budget, Budget::Pure { .. }) {
        "another budget than PureDP"
    } else if c.perturbation == Perturbation::Output {
        "mechanism=\"output\""
    } else if c.loss.curvature_floor() > 0.0 {
        "a loss with strong_convexity"
    } else if c.projection.decided() != Projection::NoiseAware {
        "a projection of the matrices"
    } else if c.calibration == Calibration::Paper {
        "calibration=\"paper\""
    } else {
        return Ok(());
    };
    Err(Error::Unsupported(format!(
        "moments=\"levels\" requires PureDP, objective perturbation with an intercept, and rows in blocks, got {got} \
         (use moments=\"joint\")"
    )))
}

/// Refuses noise in the shape of the rows where it is not proved, or the rows have no shape.
fn check_shaped(c: &Choices, gaussian: bool) -> Result<()> {
    let [name, budgets] = if gaussian {
        ["shaped_gaussian", "ApproxDP"]
    } else {
        ["shaped_laplace", "PureDP or ZCDP"]
    };
    let got = if c.rows.is_ball() {
        "rows in a ball (pass rows with blocks, or noise=None)"
    } else if c.perturbation == Perturbation::Output {
        "mechanism=\"output\" (use mechanism=\"objective\" or noise=None)"
    } else if gaussian != matches!(c.budget, Budget::Approx { .. }) {
        "another budget (use noise=None)"
    } else if c.calibration == Calibration::Paper {
        "calibration=\"paper\""
    } else {
        return Ok(());
    };
    Err(Error::Unsupported(format!(
        "noise={name:?} requires {budgets}, objective perturbation and rows in blocks, got {got}"
    )))
}

/// Refuses what the kink of a loss, or a missing radius, rules out.
pub(super) fn check_domain_choices(c: &Choices) -> Result<()> {
    let unsupported = |message: String| Err(Error::Unsupported(message));
    if c.loss.kinked() && c.perturbation == Perturbation::Objective {
        return unsupported(format!(
            "mechanism=\"objective\" requires a loss with a second derivative, got the {} loss (use mechanism=\"output\", \
            huber_hinge or smooth_hinge)",
            c.loss.name()
        ));
    }
    if c.loss.kinked() && c.moments != Moments::None {
        return unsupported(format!(
            "intervals require a loss with a Hessian, got the {} loss (pass moments=\"none\", or use huber_hinge or \
            smooth_hinge, which round the kink)",
            c.loss.name()
        ));
    }
    if c.project && c.radius.is_none() {
        return unsupported("project=True requires a radius, got radius=None".into());
    }
    Ok(())
}
