//! Blocks of rows as the kernels of Gram matrices read them: from the beginning of cache lines on.

use pulp::{Simd, WithSimd};

/// Columns whose products with [`RIGHT`] others are summed together: each is loaded into all entries of a register.
pub(super) const LEFT: usize = 6;
/// Columns that are loaded side by side.
pub(super) const RIGHT: usize = 16;
/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;

/// A block of rows. Tiles may go past the last column, to the beginning of the next row: behind the last row there is room for that.
#[derive(Debug, Clone)]
pub struct PackedBlock<T = f64> {
    pub(super) dim: usize,
    pub(super) n_rows: usize,
    /// Distance of two rows: room for a tile, and more than two cache lines only in an odd number, so that equal columns of all rows lie in
    /// all sets of a cache.
    pub(super) stride: usize,
    pub(super) capacity: usize,
    /// Where the first cache line begins.
    start: usize,
    numbers: Vec<T>,
}

impl<T: Copy + Default> PackedBlock<T> {
    /// Room for `capacity` rows of `dim` entries.
    pub fn new(dim: usize, capacity: usize) -> Self {
        let line = LINE_BYTES / size_of::<T>();
        let lines = dim.max(RIGHT).div_ceil(line);
        let stride = if lines > 2 { lines | 1 } else { lines } * line;
        let numbers = vec![T::default(); (capacity + 1) * stride + line];
        Self {
            dim,
            n_rows: 0,
            stride,
            capacity,
            start: numbers.as_ptr().align_offset(LINE_BYTES).min(line),
            numbers,
        }
    }

    /// The rows from a column on: as many numbers of each as they are apart.
    pub(super) fn columns_from(&self, first: usize) -> &[T] {
        &self.numbers[self.start + first..][..self.n_rows * self.stride]
    }

    pub(super) fn rows_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.start..][..self.n_rows * self.stride]
    }
}

impl PackedBlock {
    /// Replaces the content by `n_rows` contiguous rows, row `i` times `scales[i]`, each followed by `last` (an intercept)
    /// where it is given.
    ///
    /// # Panics
    /// If the rows exceed the capacity or have another length.
    pub fn fill(&mut self, n_rows: usize, rows: &[f64], scales: Option<&[f64]>, last: Option<f64>) {
        let width = self.dim - usize::from(last.is_some());
        assert!(n_rows <= self.capacity && rows.len() == n_rows * width);
        self.n_rows = n_rows;
        let stride = self.stride;
        if width > 0 {
            let source = (rows, width);
            self.write(source, scales);
        }
        if let Some(value) = last {
            for row in self.rows_mut().chunks_exact_mut(stride) {
                row[width] = value;
            }
        }
    }

    /// Replaces the content by the rows of another block of this shape, each times its weight.
    pub(super) fn fill_weighted(&mut self, block: &Self, weights: &[f64]) {
        self.n_rows = block.n_rows;
        self.write((block.columns_from(0), block.stride), Some(weights));
    }

    /// Writes rows that are so far apart, times their scales.
    fn write(&mut self, (rows, width): (&[f64], usize), scales: Option<&[f64]>) {
        let stride = self.stride;
        crate::linalg::arch().dispatch(WriteRows {
            rows,
            width,
            scales,
            stride,
            out: self.rows_mut(),
        });
    }
}

/// Copies rows to places farther apart.
struct WriteRows<'a> {
    rows: &'a [f64],
    width: usize,
    scales: Option<&'a [f64]>,
    stride: usize,
    out: &'a mut [f64],
}

impl WithSimd for WriteRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let places = self.out.chunks_exact_mut(self.stride);
        for (i, (row, out)) in self.rows.chunks_exact(self.width).zip(places).enumerate() {
            let scale = simd.splat_f64s(self.scales.map_or(1.0, |s| s[i]));
            let (source, rest) = S::as_simd_f64s(row);
            let (target, _) = S::as_mut_simd_f64s(out);
            for (t, &s) in target.iter_mut().zip(source) {
                *t = simd.mul_f64s(scale, s);
            }
            if !rest.is_empty() {
                target[source.len()] = simd.mul_f64s(scale, simd.partial_load_f64s(rest));
            }
        }
    }
}
