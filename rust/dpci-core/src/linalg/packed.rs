//! Blocks of rows in panels of columns, so that the kernels of Gram matrices read memory in order.

use pulp::{Simd, WithSimd};

/// Columns of a panel: the contiguous operand of a tile.
pub(super) const RIGHT: usize = 16;

/// A block of rows, packed in panels of 16 columns so that a tile reads memory in order.
#[derive(Debug)]
pub struct PackedBlock {
    pub(super) dim: usize,
    pub(super) capacity: usize,
    pub(super) n_rows: usize,
    pub(super) right: Vec<f64>,
}

impl PackedBlock {
    /// Room for `capacity` rows of `dim` entries.
    #[must_use]
    pub fn new(dim: usize, capacity: usize) -> Self {
        let panels = dim.div_ceil(RIGHT);
        Self {
            dim,
            capacity,
            n_rows: 0,
            right: vec![0.0; panels * capacity * RIGHT],
        }
    }

    /// Replaces the content by `n_rows` contiguous rows, row `i` times `scales[i]`, each followed by `last` (an intercept)
    /// where it is given.
    ///
    /// # Panics
    /// If the rows exceed the capacity or have another length.
    pub fn fill(&mut self, n_rows: usize, rows: &[f64], scales: Option<&[f64]>, last: Option<f64>) {
        let width = self.dim - usize::from(last.is_some());
        assert!(n_rows <= self.capacity && rows.len() == n_rows * width);
        self.n_rows = n_rows;
        let stride = self.capacity * RIGHT;
        if width > 0 {
            crate::linalg::arch().dispatch(PackRows {
                rows,
                width,
                scales,
                stride,
                right: &mut self.right,
            });
        }
        if let Some(value) = last {
            let panel = &mut self.right[width / RIGHT * stride..][..n_rows * RIGHT];
            for row in panel.chunks_exact_mut(RIGHT) {
                row[width % RIGHT] = value;
            }
        }
    }
}

/// Copies rows into panels.
struct PackRows<'a> {
    rows: &'a [f64],
    width: usize,
    scales: Option<&'a [f64]>,
    stride: usize,
    right: &'a mut [f64],
}

impl WithSimd for PackRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (i, row) in self.rows.chunks_exact(self.width).enumerate() {
            let scale = simd.splat_f64s(self.scales.map_or(1.0, |s| s[i]));
            for (panel, part) in row.chunks(RIGHT).enumerate() {
                let at = panel * self.stride + i * RIGHT;
                let (target, _) = S::as_mut_simd_f64s(&mut self.right[at..at + RIGHT]);
                let (source, rest) = S::as_simd_f64s(part);
                for (t, &s) in target.iter_mut().zip(source) {
                    *t = simd.mul_f64s(scale, s);
                }
                if !rest.is_empty() {
                    target[source.len()] = simd.mul_f64s(scale, simd.partial_load_f64s(rest));
                }
            }
        }
    }
}
