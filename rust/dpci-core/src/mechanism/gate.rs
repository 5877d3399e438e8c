//! The two ways out of a mechanism: through the seal in a release, past it in a study. Both share the noise, the minimiser and the moments.

use super::seal::{Sealed, Values, check_finite, moved_into_ball};
use crate::Result;
use crate::noise::{Law, LevelTotals, NoiseGenerator, SimulationGenerator};
use crate::spec::Seal;

mod closed {
    /// Closes [`super::Gate`] to other crates and modules.
    pub trait Closed {}
}

/// How a mechanism draws its noise, and what its values become: [`Sealing`] or [`Simulating`].
///
/// The gate decides the type of what comes out, so parameters that skipped the seal cannot take the place of released ones:
///
/// ```
/// use dpci_core::mechanism::{Fit, Sealed};
/// fn publish(_: Fit<Sealed>) {}
/// fn release(fit: Fit<Sealed>) { publish(fit) }
/// ```
/// ```compile_fail
/// use dpci_core::mechanism::{Fit, Sealed, Simulated};
/// fn publish(_: Fit<Sealed>) {}
/// fn study(fit: Fit<Simulated>) { publish(fit) }
/// ```
pub trait Gate: closed::Closed {
    /// Type of the values that come out.
    type Value: Values;

    /// Whether values are sealed: a minimiser then has to lie within the distance that the seal hides.
    const SEALS: bool;

    /// A draw of noise.
    fn draw(&mut self, law: &impl Law) -> Result<Vec<f64>>;

    /// Lets out `values`, together with what rounding took from them, where that is known.
    ///
    /// # Privacy
    /// As [`Seal::release`] through [`Sealing`]; none through [`Simulating`].
    fn release(&mut self, seal: &Seal, values: Vec<f64>, rest: Option<&[f64]>) -> Result<Self::Value>;

    /// Lets out a symmetric matrix (row-major).
    ///
    /// # Privacy
    /// As [`Self::release`].
    fn release_symmetric(&mut self, seal: &Seal, matrix: Vec<f64>) -> Result<Self::Value>;

    /// Lets out a symmetric matrix with level totals, which are sealed finer.
    ///
    /// # Privacy
    /// As [`Self::release`].
    fn release_with_levels(&mut self, seal: &Seal, matrix: Vec<f64>, levels: &LevelTotals) -> Result<Self::Value>;
}

/// The gate of releases: noise with a sure error, and the seal. Audits give it a simulation generator, as does a fit with a seed.
#[derive(Debug)]
pub struct Sealing<'a, G>(pub &'a mut G);

impl<G: NoiseGenerator> closed::Closed for Sealing<'_, G> {}

impl<G: NoiseGenerator> Gate for Sealing<'_, G> {
    type Value = Sealed;

    const SEALS: bool = true;

    fn draw(&mut self, law: &impl Law) -> Result<Vec<f64>> {
        law.sample_bounded(self.0)
    }

    fn release(&mut self, seal: &Seal, values: Vec<f64>, rest: Option<&[f64]>) -> Result<Sealed> {
        match rest {
            None => seal.release(&values, self.0),
            Some(rest) => seal.release_with_rest(values, rest, self.0),
        }
    }

    fn release_symmetric(&mut self, seal: &Seal, matrix: Vec<f64>) -> Result<Sealed> {
        seal.release_symmetric(&matrix, self.0)
    }

    fn release_with_levels(&mut self, seal: &Seal, matrix: Vec<f64>, levels: &LevelTotals) -> Result<Sealed> {
        seal.release_with_levels(matrix, levels, self.0)
    }
}

/// The gate of studies: library samplers and no seal. Protects nothing, and never spends a key of a release:
///
/// ```
/// use dpci_core::{mechanism::Simulating, noise::SimulationGenerator};
/// let mut generator = SimulationGenerator::new(1, 0);
/// Simulating(&mut generator);
/// ```
/// ```compile_fail
/// use dpci_core::{mechanism::Simulating, noise::ReleaseGenerator};
/// let mut generator = ReleaseGenerator::new().unwrap();
/// Simulating(&mut generator);
/// ```
#[derive(Debug)]
pub struct Simulating<'a>(pub &'a mut SimulationGenerator);

impl closed::Closed for Simulating<'_> {}

impl Gate for Simulating<'_> {
    type Value = Simulated;

    const SEALS: bool = false;

    fn draw(&mut self, law: &impl Law) -> Result<Vec<f64>> {
        Ok(law.sample(self.0))
    }

    fn release(&mut self, seal: &Seal, values: Vec<f64>, _: Option<&[f64]>) -> Result<Simulated> {
        Simulated::new(seal.part().name(), values)
    }

    fn release_symmetric(&mut self, seal: &Seal, matrix: Vec<f64>) -> Result<Simulated> {
        Simulated::new(seal.part().name(), matrix)
    }

    fn release_with_levels(&mut self, seal: &Seal, matrix: Vec<f64>, _: &LevelTotals) -> Result<Simulated> {
        self.release_symmetric(seal, matrix)
    }
}

/// Values of a study, which skipped the seal.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated(Vec<f64>);

impl Simulated {
    pub(crate) fn new(name: &'static str, values: Vec<f64>) -> Result<Self> {
        check_finite(name, &values)?;
        Ok(Self(values))
    }
}

impl Values for Simulated {
    fn values(&self) -> &[f64] {
        &self.0
    }

    fn into_values(self) -> Vec<f64> {
        self.0
    }

    fn in_ball(&self, radius: Option<f64>) -> Self {
        Self(moved_into_ball(&self.0, radius))
    }
}
