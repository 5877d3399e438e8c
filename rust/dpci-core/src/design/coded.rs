//! Rows of numbers and of codes of categories, each code in place of as many columns as its category has levels.

use std::borrow::Cow;
use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use super::Numbers;
use super::csr::{Csr, CsrBlock};
use crate::exec::BLOCK;
use crate::linalg::{CodedBlock, Field, GramAccumulator, Layout, PackedBlock, vector};
use crate::row_domain::Blocks;
use crate::{Error, Result};

/// Codes in the narrowest type that holds them: 0 for no level, c for the c-th.
#[derive(Debug, Clone)]
pub enum Codes<'a> {
    /// One byte each.
    Bytes(Cow<'a, [u8]>),
    /// Two.
    Words(Cow<'a, [u16]>),
    /// Four.
    Longs(Cow<'a, [u32]>),
}

/// The same expression for codes of each type.
macro_rules! with_codes {
    ($codes:expr, $name:ident => $body:expr) => {
        match $codes {
            Codes::Bytes($name) => $body,
            Codes::Words($name) => $body,
            Codes::Longs($name) => $body,
        }
    };
}

fn wide(code: impl Into<u32>) -> u32 {
    code.into()
}

impl Codes<'_> {
    /// Bytes of a code of at most so many levels.
    pub(super) fn width(levels: usize) -> usize {
        match levels {
            0..0x100 => 1,
            0x100..0x1_0000 => 2,
            _ => 4,
        }
    }

    /// Codes of at most so many levels.
    #[expect(clippy::cast_possible_truncation, reason = "no code is above the number of levels")]
    pub(super) fn narrowest(codes: Vec<u32>, levels: usize) -> Codes<'static> {
        match Self::width(levels) {
            1 => Codes::Bytes(codes.iter().map(|code| *code as u8).collect()),
            2 => Codes::Words(codes.iter().map(|code| *code as u16).collect()),
            _ => Codes::Longs(codes.into()),
        }
    }

    fn len(&self) -> usize {
        with_codes!(self, codes => codes.len())
    }

    fn gathered(&self, rows: &[usize], width: usize) -> Codes<'static> {
        fn of<C: Copy>(codes: &[C], rows: &[usize], width: usize) -> Cow<'static, [C]> {
            let chosen = rows.iter().flat_map(|i| &codes[i * width..][..width]);
            Cow::Owned(chosen.copied().collect())
        }
        match self {
            Self::Bytes(codes) => Codes::Bytes(of(codes, rows, width)),
            Self::Words(codes) => Codes::Words(of(codes, rows, width)),
            Self::Longs(codes) => Codes::Longs(of(codes, rows, width)),
        }
    }
}

/// Row-major numbers and row-major codes. Rows or blocks of them that have to be scaled are kept as sparse rows instead.
#[derive(Debug, Clone)]
pub struct Coded<'a> {
    numbers: Numbers<'a>,
    codes: Codes<'a>,
    layout: Arc<Layout>,
    n_rows: usize,
}

impl<'a> Coded<'a> {
    /// Checks the lengths and every code.
    pub fn new(numbers: impl Into<Numbers<'a>>, codes: Codes<'a>, layout: Arc<Layout>) -> Result<Self> {
        let coded = Self::of_checked(numbers, codes, layout)?;
        with_codes!(&coded.codes, codes => coded.layout.check_codes(codes))?;
        Ok(coded)
    }

    /// Rows whose codes are known to be right: [`Self::new`] accepted them before.
    pub fn of_checked(numbers: impl Into<Numbers<'a>>, codes: Codes<'a>, layout: Arc<Layout>) -> Result<Self> {
        let numbers = numbers.into();
        let Some(n_rows) = codes.len().checked_div(layout.categories().len()) else {
            return Err(Error::Unsupported(
                "coded rows must have a category, got none (pass the numbers alone)".into(),
            ));
        };
        let (p, k) = (layout.numbers().len(), layout.categories().len());
        crate::error::check_length("codes", n_rows * k, codes.len())?;
        crate::error::check_length("numbers", n_rows * p, numbers.len())?;
        Ok(Self {
            numbers,
            codes,
            layout,
            n_rows,
        })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn n_columns(&self) -> usize {
        self.layout.n_columns()
    }

    /// The same rows, borrowed.
    pub fn borrowed(&self) -> Coded<'_> {
        Coded {
            numbers: match &self.numbers {
                Numbers::Double(numbers) => Numbers::Double(Cow::Borrowed(numbers)),
                Numbers::Single(numbers) => Numbers::Single(Cow::Borrowed(numbers)),
            },
            codes: match &self.codes {
                Codes::Bytes(codes) => Codes::Bytes(Cow::Borrowed(codes)),
                Codes::Words(codes) => Codes::Words(Cow::Borrowed(codes)),
                Codes::Longs(codes) => Codes::Longs(Cow::Borrowed(codes)),
            },
            layout: Arc::clone(&self.layout),
            n_rows: self.n_rows,
        }
    }

    /// Numbers and categories of a row.
    fn widths(&self) -> (usize, usize) {
        (self.layout.numbers().len(), self.layout.categories().len())
    }

    pub(super) fn n_entries(&self) -> usize {
        self.numbers.len() + self.codes.len()
    }

    /// Numbers of a range of rows.
    fn numbers(&self, rows: &Range<usize>) -> Cow<'_, [f64]> {
        let p = self.widths().0;
        self.numbers.doubles(rows.start * p..rows.end * p)
    }

    /// The entries of a range of rows, in the order of their columns.
    pub(crate) fn block(&self, rows: Range<usize>) -> CsrBlock<'static> {
        let (p, k) = self.widths();
        let numbers = self.numbers(&rows);
        let capacity = rows.len() * (p + k);
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut columns = Vec::with_capacity(capacity);
        let mut values = Vec::with_capacity(capacity);
        let categories = self.layout.categories();
        starts.push(0);
        with_codes!(&self.codes, codes => for (at, i) in rows.enumerate() {
            let (numbers, codes) = (&numbers[at * p..][..p], &codes[i * k..][..k]);
            for field in self.layout.order() {
                match *field {
                    Field::Numbers(first, count) => {
                        // The layout has fewer columns than 2³¹.
                        let at = &self.layout.numbers()[first..][..count];
                        columns.extend(at.iter().map(|j| i32::try_from(*j).unwrap_or(i32::MAX)));
                        values.extend_from_slice(&numbers[first..][..count]);
                    }
                    Field::Category(c) => {
                        let code = wide(codes[c]) as usize;
                        if code > 0 {
                            let column = categories[c].first + code - 1;
                            columns.push(i32::try_from(column).unwrap_or(i32::MAX));
                            values.push(categories[c].value);
                        }
                    }
                }
            }
            starts.push(i64::try_from(columns.len()).unwrap_or(i64::MAX));
        });
        CsrBlock::owned(starts, columns, values)
    }

    /// All rows as sparse ones.
    pub(super) fn sparse(&self) -> Csr<'static> {
        self.block(0..self.n_rows).into_rows(self.n_columns())
    }

    /// The chosen rows, owned.
    pub(super) fn select(&self, rows: &[usize]) -> Coded<'static> {
        let (p, k) = self.widths();
        let ranges = rows.iter().map(|i| i * p..(i + 1) * p);
        Coded {
            numbers: (self.numbers).gathered(ranges, None::<std::iter::Empty<f64>>),
            codes: self.codes.gathered(rows, k),
            layout: Arc::clone(&self.layout),
            n_rows: rows.len(),
        }
    }

    /// Numbers and codes of a row, to tell rows apart.
    pub(super) fn hash(&self, i: usize, hasher: &mut impl Hasher) {
        for value in &*self.numbers(&(i..i + 1)) {
            hasher.write_u64(value.to_bits());
        }
        let k = self.widths().1;
        with_codes!(&self.codes, codes => for code in &codes[i * k..][..k] {
            hasher.write_u32(wide(*code));
        });
    }

    /// Whether two rows have the same bits.
    pub(super) fn equal(&self, i: usize, j: usize) -> bool {
        let (a, b) = (self.numbers(&(i..i + 1)), self.numbers(&(j..j + 1)));
        let k = self.widths().1;
        let bits = |row: &[f64]| row.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        with_codes!(&self.codes, codes => codes[i * k..][..k] == codes[j * k..][..k]) && bits(&a) == bits(&b)
    }

    /// Adds the numbers of a table at the codes of each row.
    fn look_up(&self, rows: &Range<usize>, table: &[f64], out: &mut [f64]) {
        let k = self.widths().1;
        with_codes!(&self.codes, codes => {
            self.layout.look_up(&codes[rows.start * k..rows.end * k], table, out);
        });
    }

    /// Whether each number and each category has a block of rows of its own, which holds the entries of the categories.
    pub(super) fn categories_within(&self, blocks: &Blocks) -> bool {
        let members = blocks.members();
        let singles = self.layout.numbers().iter().map(|j| (*j..j + 1, 0.0));
        let categories = self.layout.categories().iter();
        let several = categories.map(|c| (c.columns(), c.value.abs()));
        let mut fields = singles.chain(several).filter(|(of, _)| !of.is_empty());
        fields.all(|(columns, value)| {
            let block = members[columns.start];
            let is_whole = blocks.sizes()[block] == columns.len();
            is_whole && members[columns].iter().all(|member| *member == block) && value <= blocks.bounds()[block]
        })
    }

    /// Whether every number of a range of rows is within the bound of its block; not where one is no number.
    pub(super) fn numbers_within(&self, rows: &Range<usize>, blocks: &Blocks) -> bool {
        let bound = |j: &usize| blocks.bounds()[blocks.members()[*j]];
        let bounds: Vec<f64> = self.layout.numbers().iter().map(bound).collect();
        let numbers = self.numbers(rows);
        let mut rows = numbers.chunks_exact(bounds.len().max(1));
        rows.all(|row| row.iter().zip(&bounds).all(|(x, bound)| x.abs() <= *bound))
    }

    /// Squares of the entries of the categories, for [`Self::squared_norms`].
    pub(super) fn squares(&self) -> Vec<f64> {
        self.layout.table(|category| category.value * category.value)
    }

    pub(super) fn squared_norms(&self, rows: Range<usize>, squares: &[f64], out: &mut [f64]) {
        match self.widths().0 {
            0 => out.fill(0.0),
            p => vector::rows_squared_norms(&self.numbers(&rows), p, out),
        }
        self.look_up(&rows, squares, out);
    }

    pub(super) fn times_vector(&self, rows: Range<usize>, vector: &[f64], out: &mut [f64]) {
        let numbers = self.numbers(&rows);
        let k = self.widths().1;
        with_codes!(&self.codes, codes => {
            let codes = &codes[rows.start * k..rows.end * k];
            self.layout.times_vector(&numbers, codes, vector, out);
        });
    }

    pub(super) fn add_weighted(&self, rows: Range<usize>, weights: &[f64], out: &mut [f64]) {
        let (p, k) = self.widths();
        if p > 0 {
            let mut sums = vec![0.0; p];
            vector::add_weighted_rows(&self.numbers(&rows), weights, &mut sums);
            for (j, sum) in self.layout.numbers().iter().zip(sums) {
                out[*j] += sum;
            }
        }
        let mut table = vec![0.0; self.layout.table_len()];
        with_codes!(&self.codes, codes => {
            let codes = &codes[rows.start * k..rows.end * k];
            self.layout.add_to_bins(codes, weights, &mut table);
        });
        self.layout.add_table(&table, out);
    }

    /// Counterpart of the design's method.
    pub(super) fn scatter_weighted(
        &self,
        range: Range<usize>,
        weights: &[f64],
        places: &[(usize, usize)],
        out: &mut [f64],
    ) {
        let block = self.block(range);
        for &(i, place) in places {
            for (column, value) in block.entries(i).iter() {
                out[place + column] += weights[i] * value;
            }
        }
    }

    /// Whether Gram matrices are cheaper from tables of pairs than from dense blocks, which use vector instructions.
    pub(super) fn prefers_tables(&self) -> bool {
        let (p, k) = self.widths();
        let dense = self.n_columns() * self.n_columns() / 32 + self.n_columns() / 2;
        k * (k + 3) + k * p / 4 < dense
    }

    /// Adds the products of a range of rows to each accumulator with its weights.
    pub(super) fn add_tables<const K: usize>(
        &self,
        rows: Range<usize>,
        last: Option<f64>,
        weights: [&[f64]; K],
        grams: &mut [GramAccumulator; K],
    ) {
        let (p, k) = self.widths();
        let numbers = self.numbers(&rows);
        let numbers = match last {
            None => numbers,
            Some(last) => {
                let mut with_last = Vec::with_capacity(rows.len() * (p + 1));
                for i in 0..rows.len() {
                    with_last.extend_from_slice(&numbers[i * p..][..p]);
                    with_last.push(last);
                }
                Cow::Owned(with_last)
            }
        };
        let mut places = Vec::with_capacity(BLOCK * k);
        with_codes!(&self.codes, codes => {
            self.layout.places(&codes[rows.start * k..rows.end * k], &mut places);
        });
        let block = CodedBlock {
            numbers: &numbers,
            places: &places,
        };
        for (weights, gram) in weights.into_iter().zip(grams) {
            gram.add_coded(&self.layout, block, weights);
        }
    }

    pub(super) fn pack(&self, range: Range<usize>, last: Option<f64>, block: &mut PackedBlock) {
        let n_columns = self.n_columns();
        let mut rows = vec![0.0; range.len() * n_columns];
        let sparse = self.block(range.clone());
        for (entries, row) in sparse.rows().zip(rows.chunks_exact_mut(n_columns)) {
            for (c, v) in entries.iter() {
                row[c] = v;
            }
        }
        block.fill(range.len(), &rows, None, last);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Category, Design, OnViolation, RowBounds, Rows};
    use crate::exec::Executor;
    use crate::loss::Targets;
    use crate::row_domain::RowDomain;

    #[test]
    fn equal_rows_are_merged() {
        let category = Category {
            first: 1,
            levels: 300,
            value: 0.5,
        };
        let layout = Arc::new(Layout::new(vec![0], vec![category]).unwrap());
        let numbers: Vec<f64> = (0..600).map(|i| f64::from(i % 2)).collect();
        let codes: Vec<u16> = (0..600).map(|i| i % 150 * 2).collect();
        let rows = Coded::new(&numbers[..], Codes::Words(codes.into()), layout).unwrap();
        let bounds = RowBounds {
            rows: RowDomain::Ball(2.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let mut written = Vec::new();
        for rows in [Rows::Csr(rows.sparse()), Rows::Coded(rows)] {
            let design = Design::new(rows, &[1.0; 600], None, &bounds, &exec).unwrap();
            let merged = design.merged(&exec).unwrap();
            assert_eq!((merged.n_rows(), merged.n_records()), (150, 600));
            assert_eq!(merged.multiplicities(), Some(&[4; 150][..]));
            let mut rows = vec![0.0; 150 * 301];
            merged.write_rows(0..150, &mut rows);
            written.push(rows);
        }
        assert_eq!(written[0], written[1]);
    }
}
