//! The exact ex-post privacy loss of a released model for given records. Never private: it reads the data.

use crate::design::Design;
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::Eigen;
use crate::linalg::vector;
use crate::objective::{HessianRows, Objective};
use crate::per_instance::{Model, PersonTerms, log_det_plus, slopes_and_curvatures, squared_coordinates};
use crate::{Error, Result};

/// `ln p_D(θ̃)/p_D'(θ̃)` of Gaussian objective perturbation for each record z, signed: D' is D without z for a `member` of D,
/// and D with z for others.
///
/// With `b = -∇(Σl + Λ‖θ‖²/2)(θ̃)`, g = l'x and `m = xᵀH⁻¹x` on D, `-ln(1 - l''m) + (‖g‖² + 2bᵀg)/2σ²` for members and
/// `-ln(1 + l''m) + (‖g‖² - 2bᵀg)/2σ²` for others (`docs/per_instance.md`, "The exact loss"); of persons with their mean gradient g and
/// the determinants of their Hessians.
pub fn ex_post_losses(
    model: &Model,
    n_public: f64,
    data: &Design<'_>,
    records: &Design<'_>,
    member: &[bool],
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    let dim = model.params.len();
    check_length("each row of X", dim, data.n_params())?;
    check_length("each row of records", dim, records.n_params())?;
    check_length("member", records.n_records(), member.len())?;
    let l2_strength = model.ridge / n_public;
    let objective = Objective::new(data, &*model.loss, l2_strength, n_public, exec);
    let at = objective.evaluate(&model.params, HessianRows::All)?;
    let noise: Vec<f64> = at.gradient.iter().map(|g| -g * n_public).collect();
    let hessian = at.hessian.ok_or(Error::NotPositiveDefinite("the Hessian"))?;
    let eigen = Eigen::new(&hessian, dim, "the Hessian")?;
    let variance = model.std_dev * model.std_dev;
    let not_in_the_data = |record: usize| {
        Error::Unsupported(format!(
            "every record with member=True must be in the data, got record {record}, which is not"
        ))
    };
    if let Some(persons) = records.persons() {
        let terms = PersonTerms::new(records, persons, model, exec)?;
        let inverses: Vec<f64> = eigen.values.iter().map(|value| 1.0 / (value * n_public)).collect();
        return member
            .iter()
            .enumerate()
            .map(|(person, member)| {
                exec.check()?;
                let found = terms.of(person);
                let sign = if *member { 1.0 } else { -1.0 };
                let eigenvalues = found.eigenvalues(Some(&eigen.vectors), &inverses)?;
                let log_det = -log_det_plus(&eigenvalues, -sign);
                if !log_det.is_finite() {
                    return Err(not_in_the_data(person));
                }
                let square = vector::dot(&found.gradient, &found.gradient);
                let cross = vector::dot(&found.gradient, &noise);
                Ok(log_det + (0.5 * square + sign * cross) / variance)
            })
            .collect();
    }
    let chunks = records.chunks();
    let parts = exec.map(chunks.len(), |c| {
        let mut losses = Vec::with_capacity(chunks[c].len());
        let mut squares = Vec::new();
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            let n = range.len();
            let mut buffers = [[0.0; BLOCK]; 4];
            let [slope, curvature, norm, along] = &mut buffers;
            let (slope, curvature) = (&mut slope[..n], &mut curvature[..n]);
            let (norm, along) = (&mut norm[..n], &mut along[..n]);
            slopes_and_curvatures(records, &*model.loss, &model.params, range.clone(), slope, curvature)?;
            squared_coordinates(records, range.clone(), &eigen.vectors, &mut squares);
            records.linear_predictor(range.clone(), &noise, along);
            records.squared_norms(range.clone(), norm);
            for (i, row) in range.enumerate() {
                let leverage: f64 = eigen
                    .values
                    .iter()
                    .enumerate()
                    .map(|(j, value)| squares[j * n + i] / (value * n_public))
                    .sum();
                // The removed record's term leaves the Hessian, an added one's joins it.
                let sign = if member[row] { 1.0 } else { -1.0 };
                let log_det = -(-sign * curvature[i] * leverage).ln_1p();
                if !log_det.is_finite() {
                    return Err(not_in_the_data(row));
                }
                let (ratio, cross) = (
                    slope[i] * slope[i] * norm[i] / model.std_dev / model.std_dev,
                    slope[i] * along[i] / model.std_dev / model.std_dev,
                );
                losses.push(log_det + 0.5 * ratio + sign * cross);
            }
        }
        Ok(losses)
    })?;
    Ok(parts.concat())
}
