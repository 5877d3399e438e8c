//! Mean gradient and Hessian of the rows of a person, for bounds and exact losses; the rank of the Hessian may be above one.

use super::leverage::decomposition_error;
use super::rows::slopes_and_curvatures;
use super::{Model, RecordBounds, RecordEpsilons, RecordFacts};
use crate::Result;
use crate::design::{Design, Persons};
use crate::exec::{BLOCK, Executor, blocks, row_chunks};
use crate::linalg::{Eigen, vector};

/// Terms of the rows of all persons at given parameters.
pub(crate) struct PersonTerms<'a> {
    records: &'a Design<'a>,
    persons: &'a Persons,
    /// `ω l'`, `ω l''` and `‖x‖²` by row.
    slopes: Vec<f64>,
    curvatures: Vec<f64>,
    squares: Vec<f64>,
}

/// One person: the gradient `g = Σ ω l' x`, and the Hessian `P = Σ ω l'' x xᵀ = UᵀU`.
pub(crate) struct Person {
    /// g.
    pub(crate) gradient: Vec<f64>,
    /// How far g may be from its exact value, which its terms can cancel.
    slack: f64,
    /// The rows of U: `√(ω l'') x`, one after another.
    factor: Vec<f64>,
    /// Rows that count for more than 0.
    n_rows: usize,
}

impl<'a> PersonTerms<'a> {
    /// In one pass over the rows.
    pub(crate) fn new(
        records: &'a Design<'a>,
        persons: &'a Persons,
        model: &Model,
        exec: &Executor<'_>,
    ) -> Result<Self> {
        let chunks = records.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let (chunk, first) = (chunks[c].clone(), chunks[c].start);
            let mut terms = [(); 3].map(|()| vec![0.0; chunk.len()]);
            for range in blocks(chunk) {
                exec.check()?;
                let at = range.start - first..range.end - first;
                let [slopes, curvatures, squares] = &mut terms;
                records.squared_norms(range.clone(), &mut squares[at.clone()]);
                let (slopes, curvatures) = (&mut slopes[at.clone()], &mut curvatures[at]);
                let (loss, params) = (&*model.loss, &model.params);
                slopes_and_curvatures(records, loss, params, range, slopes, curvatures)?;
            }
            Ok(terms)
        })?;
        let [slopes, curvatures, squares] =
            [0, 1, 2].map(|k| parts.iter().map(|terms| &*terms[k]).collect::<Vec<_>>().concat());
        Ok(Self {
            records,
            persons,
            slopes,
            curvatures,
            squares,
        })
    }

    /// Mean gradient and Hessian of one person.
    pub(crate) fn of(&self, person: usize) -> Person {
        let dim = self.records.n_params();
        let mut found = Person {
            gradient: vec![0.0; dim],
            slack: 0.0,
            factor: Vec::new(),
            n_rows: 0,
        };
        let mut terms = 0.0;
        for &row in self.persons.rows_of(person) {
            if self.persons.shares()[row] == 0.0 {
                continue;
            }
            let (slope, curvature, square) = (self.slopes[row], self.curvatures[row], self.squares[row]);
            let start = found.factor.len();
            found.factor.resize(start + dim, 0.0);
            let x = &mut found.factor[start..];
            self.records.write_rows(row..row + 1, x);
            vector::add_weighted_rows(x, &[slope], &mut found.gradient);
            for x in x {
                *x *= curvature.sqrt();
            }
            found.n_rows += 1;
            terms += slope.abs() * square.sqrt();
        }
        found.slack = (found.n_rows as f64 + 8.0) * f64::EPSILON * terms;
        found
    }
}

impl Person {
    /// `UWUᵀ` or `W½UᵀUW½`, whichever is smaller, in the coordinates of orthonormal `vectors` with weights W: its eigenvalues other than 0
    /// are those of `PB⁻¹`, B the matrix with these vectors and the eigenvalues 1/W.
    fn products(&self, vectors: Option<&[f64]>, weights: &[f64]) -> (Vec<f64>, usize) {
        let dim = weights.len();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let scaled: Vec<f64> = self
            .factor
            .chunks_exact(dim)
            .flat_map(|x| {
                let coordinate = move |j: usize| match vectors {
                    Some(vectors) => vector::dot(x, &vectors[j * dim..][..dim]),
                    None => x[j],
                };
                (0..dim).map(coordinate).zip(&roots)
            })
            .map(|(c, root)| c * root)
            .collect();
        let size = self.n_rows.min(dim);
        let mut products = vec![0.0; size * size];
        if self.n_rows <= dim {
            for (a, products) in scaled.chunks_exact(dim).zip(products.chunks_exact_mut(size)) {
                for (b, product) in scaled.chunks_exact(dim).zip(products) {
                    *product = vector::dot(a, b);
                }
            }
        } else {
            for x in scaled.chunks_exact(dim) {
                for (a, products) in x.iter().zip(products.chunks_exact_mut(size)) {
                    vector::add_weighted_rows(x, &[*a], products);
                }
            }
        }
        (products, size)
    }

    /// The eigenvalues of `PB⁻¹` other than 0, rounded up.
    pub(crate) fn eigenvalues(&self, vectors: Option<&[f64]>, weights: &[f64]) -> Result<Vec<f64>> {
        let (products, size) = self.products(vectors, weights);
        if size <= 1 {
            return Ok(products);
        }
        let eigen = Eigen::new(&products, size, "the Hessian of a person")?;
        let slack = decomposition_error(&eigen);
        Ok(eigen.values.iter().map(|v| (v + slack).max(0.0)).collect())
    }
}

/// `Σ ln(1 + sign·μ)`: the logarithm of `det(I + sign·PB⁻¹)`; NaN or -∞ where that is not positive definite.
pub(crate) fn log_det_plus(eigenvalues: &[f64], sign: f64) -> f64 {
    eigenvalues.iter().map(|mu| (sign * mu).ln_1p()).sum()
}

impl RecordBounds {
    /// The bounds of persons, in the order of their numbers.
    pub(super) fn of_persons(
        &self,
        records: &Design<'_>,
        persons: &Persons,
        exec: &Executor<'_>,
    ) -> Result<Vec<RecordEpsilons>> {
        let dim = records.n_params();
        let terms = PersonTerms::new(records, persons, &self.model, exec)?;
        let most = persons.kept().iter().max().map_or(0, |most| *most);
        let reaches: Vec<f64> = (0..=most.min(dim)).map(|rank| self.reach(rank.max(1))).collect();
        let chunks = row_chunks(persons.len(), records.n_rows() / persons.len() * dim);
        exec.map(chunks.len(), |c| {
            let mut part = RecordEpsilons::default();
            for person in chunks[c].clone() {
                if person % BLOCK == 0 {
                    exec.check()?;
                }
                let person = terms.of(person);
                let reach = reaches[person.n_rows.min(dim)];
                self.append(&self.facts_of(&person, reach)?, &mut part);
            }
            Ok(part)
        })
    }

    fn facts_of(&self, person: &Person, reach: f64) -> Result<RecordFacts> {
        let ridge = self.model.ridge;
        let own = person.eigenvalues(None, &vec![1.0; person.gradient.len()])?;
        let by_ridge: Vec<f64> = own.iter().map(|mu| mu / ridge).collect();
        // Data that hold the person have a Hessian of at least ΛI + P, and all others one of at least ΛI.
        let mut log_det = log_det_plus(&by_ridge, 1.0);
        let mut along = 0.0;
        if let Some(extra) = &self.extra {
            let gradient = &extra.released.gradient;
            along = vector::dot(&person.gradient, gradient).abs() + person.slack * vector::norm(gradient);
            let lowered = self.lowered_eigenvalues(person)?;
            if lowered.iter().all(|mu| *mu < 1.0) {
                // -ln det(I - PB⁻¹), B at most the Hessian, covers a person of the data and, being greater than ln det(I + PB⁻¹),
                // any other.
                log_det = log_det.min(-log_det_plus(&lowered, -1.0));
            }
        }
        Ok(RecordFacts {
            gradient_norm: vector::norm(&person.gradient) + person.slack,
            along,
            hessian_norm: vector::norm(&own),
            log_det,
            reach,
        })
    }

    /// The eigenvalues of `PB⁻¹`, B the lower bound on the Hessian for which their sum, the trace, is least.
    fn lowered_eigenvalues(&self, person: &Person) -> Result<Vec<f64>> {
        let Some(extra) = &self.extra else {
            return Ok(Vec::new());
        };
        let (dim, vectors) = (person.gradient.len(), &extra.leverage.vectors);
        let square = |v: &[f64]| {
            let rows = person.factor.chunks_exact(dim);
            rows.map(|x| vector::dot(x, v).powi(2)).sum::<f64>()
        };
        let squares: Vec<f64> = vectors.chunks_exact(dim).map(square).collect();
        let (mut trace, mut share) = ([0.0], [0.0]);
        extra.leverage.fill(&squares, &mut trace, &mut share);
        person.eigenvalues(Some(vectors), &extra.leverage.weights(share[0]))
    }
}
