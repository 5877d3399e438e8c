//! Cost of a fit and its expected precision, before any data are seen.

use super::{MomentNoise, Projection, Spec};
use crate::Result;
use crate::interval::{ErrorShape, half_width, half_widths};
use crate::row_domain::Blocks;
use crate::spec::{Seal, Step};

/// Half width of the normal law at .95.
const NORMAL: f64 = 1.96;

/// The public consequences of a [`Spec`].
#[derive(Debug, Clone)]
pub struct Plan {
    /// Steps; the moments' scales hold for all parameters of the domain.
    pub steps: Vec<Step>,
    /// How the values will be sealed; for the moments at all parameters of the domain.
    pub seals: Vec<Seal>,
    /// The fit needs λ above this; 0 where any λ > 0 serves.
    pub least_l2_strength: f64,
    /// `r_H` for parameters of any norm; 0 without moments.
    pub spectral_radius: f64,
    /// The projection at that `r_H`.
    pub projection: Projection,
    /// Least and greatest length of a 95% interval of one parameter from the coefficients' noise alone; on a ball at most its
    /// diameter, as a longer interval tells no more than the ball does.
    pub privacy_length: [f64; 2],
}

impl Spec {
    /// The plan.
    ///
    /// # Errors
    /// As [`Spec::moment_noise`].
    pub fn plan(&self) -> Result<Plan> {
        let mut steps = vec![self.coefficients.clone()];
        let noise = self.moment_noise(self.greatest_margin())?;
        let spectral_radius = noise.as_ref().map_or(0.0, |n| n.spectral_radius(self.n_params()));
        let moments = noise.iter().flat_map(MomentNoise::seals);
        let seals = std::iter::once(self.seal).chain(moments).collect();
        steps.extend(noise.into_iter().flat_map(|n| n.steps));
        let [least, greatest] = self.noise_gain();
        let greatest_half = self.radius().unwrap_or(f64::INFINITY);
        let seal = self.seal.std_dev().powi(2);
        let shape = ErrorShape::plug_in(self.law.clone());
        let ends = self.law.std_dev_range();
        let of_all = self.law.coordinate_std_dev();
        let length = |gain: f64, end: usize| {
            let half = match self.law.blocks() {
                None => half_width(seal, gain * (ends[end] / of_all), &shape, 0.95)?,
                // Along one coordinate the tails are shortest in number; a sum of many is normal.
                Some(blocks) => {
                    let one = greatest_or_least(blocks, end);
                    let multipliers: Vec<f64> = one.map(|unit| gain * unit).collect();
                    let along = half_widths(&[seal], &multipliers, &shape, 0.95)?[0];
                    let normal = NORMAL * seal.sqrt().hypot(gain * ends[end]);
                    if end == 0 { along.min(normal) } else { along.max(normal) }
                }
            };
            Ok(2.0 * half.min(greatest_half))
        };
        Ok(Plan {
            steps,
            seals,
            least_l2_strength: self.least_l2_strength()?,
            spectral_radius,
            projection: self.choices.projection.decided(),
            privacy_length: [length(least, 0)?, length(greatest, 1)?],
        })
    }
}

/// The coordinate of the least (0) or the greatest (1) noise as a contrast.
fn greatest_or_least(blocks: &Blocks, end: usize) -> impl Iterator<Item = f64> {
    let variances = blocks.variances();
    let by_size = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1);
    let numbered = variances.iter().enumerate();
    let found = if end == 0 {
        numbered.min_by(by_size)
    } else {
        numbered.max_by(by_size)
    };
    let at = found.map_or(0, |(j, _)| j);
    (0..variances.len()).map(move |j| if j == at { 1.0 } else { 0.0 })
}
