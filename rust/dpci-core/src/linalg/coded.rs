//! Columns of categories as codes: look-ups in place of products, bins in place of sums, tables of pairs in place of Gram matrices.
//!
//! A category of m levels has m columns, of which a row has at most one entry: code c ≥ 1 is an entry in the c-th of them, code 0 none.
//! Tables give each category a place for every code, one category behind the other, so that no code needs a branch.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::predict::{LANES, sum};
use crate::error::{check, check_length};
use crate::exec::BLOCK;
use crate::{Error, Result};

/// A category: the columns of its levels, and the entry that a row has in one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Category {
    /// Column of the first level.
    pub first: usize,
    /// Number of levels.
    pub levels: usize,
    /// The entry.
    pub value: f64,
}

impl Category {
    /// Columns of the levels.
    pub fn columns(&self) -> Range<usize> {
        self.first..self.first + self.levels
    }
}

/// Which columns of a row are numbers, and which are levels of categories.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    numbers: Vec<usize>,
    categories: Vec<Category>,
    /// Place of code 0 of each category in a table, and the length of a table.
    starts: Vec<usize>,
    n_columns: usize,
    /// Numbers and categories in the order of their columns.
    order: Vec<Field>,
}

/// Numbers or a category, by their place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// So many numbers from the first on, in consecutive columns.
    Numbers(usize, usize),
    /// A category.
    Category(usize),
}

impl Layout {
    /// Columns of the numbers, and categories, in the order in which rows hold them. Together they are all columns from 0 on.
    pub fn new(numbers: Vec<usize>, categories: Vec<Category>) -> Result<Self> {
        let mut starts = vec![0];
        let mut n_columns = numbers.len();
        let mut place = 0_usize;
        for category in &categories {
            check(
                category.value.is_finite(),
                "the entry of a category",
                "finite",
                category.value,
            )?;
            n_columns = n_columns.saturating_add(category.levels);
            place = place.saturating_add(category.levels).saturating_add(1);
            starts.push(place);
        }
        let refused = || {
            Error::Unsupported(
                "coded rows must have each column once, as a number or as a level of a category, and fewer than 2³¹, got others".into(),
            )
        };
        if i32::try_from(n_columns).is_err() || i32::try_from(place).is_err() {
            return Err(refused());
        }
        let mut taken = vec![false; n_columns];
        let singles = numbers.iter().map(|j| *j..j.saturating_add(1));
        let several = categories.iter().map(|c| c.first..c.first.saturating_add(c.levels));
        for columns in singles.chain(several) {
            let places = taken.get_mut(columns).ok_or_else(refused)?;
            if places.contains(&true) {
                return Err(refused());
            }
            places.fill(true);
        }
        let mut order: Vec<Field> = Vec::new();
        for j in 0..numbers.len() {
            match order.last_mut() {
                Some(Field::Numbers(_, count)) if numbers[j] == numbers[j - 1] + 1 => *count += 1,
                _ => order.push(Field::Numbers(j, 1)),
            }
        }
        order.extend((0..categories.len()).map(Field::Category));
        order.sort_by_key(|field| match field {
            Field::Numbers(j, _) => numbers[*j],
            Field::Category(k) => categories[*k].first,
        });
        Ok(Self {
            numbers,
            categories,
            starts,
            n_columns,
            order,
        })
    }

    getters! { self =>
        /// Columns of the numbers.
        pub numbers: &[usize] = &self.numbers;
        /// Categories.
        pub categories: &[Category] = &self.categories;
        /// Numbers and categories in the order of their columns.
        pub order: &[Field] = &self.order;
        /// Number of columns.
        pub n_columns: usize = self.n_columns;
        /// The length of a table: all codes of all categories.
        pub table_len: usize = self.starts.last().copied().unwrap_or_default();
    }

    /// Place of code 0 of a category in a table.
    pub(super) fn start(&self, category: usize) -> usize {
        self.starts[category]
    }

    /// Refuses codes beyond the levels of their categories: `codes` are those of whole rows.
    pub fn check_codes<C: Copy + Into<u32>>(&self, codes: &[C]) -> Result<()> {
        let k = self.categories.len();
        if k == 0 {
            return check_length("codes", 0, codes.len());
        }
        check_length("codes", codes.len().next_multiple_of(k), codes.len())?;
        let mut greatest = vec![0_u32; k];
        for row in codes.chunks_exact(k) {
            for (greatest, code) in greatest.iter_mut().zip(row) {
                *greatest = (*greatest).max((*code).into());
            }
        }
        for (at, (category, code)) in self.categories.iter().zip(greatest).enumerate() {
            if code as usize > category.levels {
                return Err(Error::Unsupported(format!(
                    "the codes of category {at} must be at most {}, the number of its levels, got {code}",
                    category.levels
                )));
            }
        }
        Ok(())
    }

    /// A table of a function of the category for code 0 and others.
    pub fn table(&self, entry: impl Fn(&Category) -> f64) -> Vec<f64> {
        let mut table = Vec::with_capacity(self.table_len());
        for category in &self.categories {
            table.push(0.0);
            table.resize(table.len() + category.levels, entry(category));
        }
        table
    }

    /// `out[i]` is the product of row i, with these numbers and codes, and a vector: that of the same row stored dense, bit by bit, because the
    /// entries go to the lanes of [`super::rows_times_vector`] in the order of their columns.
    pub fn times_vector<C: Copy + Into<u32>>(&self, numbers: &[f64], codes: &[C], vector: &[f64], out: &mut [f64]) {
        let (p, k) = (self.numbers.len(), self.categories.len());
        let table = self.products(vector);
        for (b, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = b * BLOCK;
            let numbers = &numbers[first * p..][..out.len() * p];
            let codes = &codes[first * k..][..out.len() * k];
            let mut lanes = [[0.0; LANES]; BLOCK];
            let lanes = &mut lanes[..out.len()];
            for field in &self.order {
                match *field {
                    Field::Numbers(j, count) => {
                        let column = self.numbers[j];
                        let coefficients = &vector[column..][..count];
                        add_products(lanes, numbers, &p, &j, &column, coefficients);
                    }
                    Field::Category(c) => {
                        let products = &table[self.starts[c]..self.starts[c + 1]];
                        // The column before the first, that of code 0, whose product is 0.
                        let before = self.categories[c].first + LANES - 1;
                        for (lanes, row) in lanes.iter_mut().zip(codes.chunks_exact(k)) {
                            let code: u32 = row[c].into();
                            let code = code as usize;
                            lanes[(before + code) % LANES] += products[code];
                        }
                    }
                }
            }
            for (out, lanes) in out.iter_mut().zip(lanes) {
                *out = sum(*lanes);
            }
        }
    }

    /// The table of the products of a vector with the entries of the categories.
    fn products(&self, vector: &[f64]) -> Vec<f64> {
        let mut table = Vec::with_capacity(self.table_len());
        for category in &self.categories {
            table.push(0.0);
            table.extend(vector[category.columns()].iter().map(|v| category.value * v));
        }
        table
    }

    /// Adds the entries of the categories times the numbers of a table to their columns.
    pub fn add_table(&self, table: &[f64], out: &mut [f64]) {
        for (category, start) in self.categories.iter().zip(&self.starts) {
            let sums = &table[start + 1..][..category.levels];
            for (o, sum) in out[category.columns()].iter_mut().zip(sums) {
                *o += category.value * sum;
            }
        }
    }

    /// `out[i] += Σ_k table[code of category k in row i]`.
    pub fn look_up<C: Copy + Into<u32>>(&self, codes: &[C], table: &[f64], out: &mut [f64]) {
        let k = self.categories.len();
        if k == 0 {
            return;
        }
        let starts = &self.starts[..k];
        for (row, o) in codes.chunks_exact(k).zip(out) {
            let mut sum = 0.0;
            for (code, start) in row.iter().zip(starts) {
                let code: u32 = (*code).into();
                sum += table[start + code as usize];
            }
            *o += sum;
        }
    }

    /// `table[code of category k in row i] += weights[i]` for all categories.
    pub fn add_to_bins<C: Copy + Into<u32>>(&self, codes: &[C], weights: &[f64], table: &mut [f64]) {
        let k = self.categories.len();
        if k == 0 {
            return;
        }
        let starts = &self.starts[..k];
        for (row, weight) in codes.chunks_exact(k).zip(weights) {
            for (code, start) in row.iter().zip(starts) {
                let code: u32 = (*code).into();
                table[start + code as usize] += weight;
            }
        }
    }

    /// Places of the codes in a table.
    #[expect(clippy::cast_possible_truncation, reason = "the length of a table is below 2³¹")]
    pub fn places<C: Copy + Into<u32>>(&self, codes: &[C], out: &mut Vec<u32>) {
        let k = self.categories.len();
        let starts: Vec<u32> = self.starts[..k].iter().map(|start| *start as u32).collect();
        out.clear();
        for row in codes.chunks_exact(k.max(1)) {
            out.extend(row.iter().zip(&starts).map(|(code, start)| {
                let code: u32 = (*code).into();
                code + start
            }));
        }
    }
}

wide_loop! {
    /// Adds the products of consecutive columns, the numbers from `j` on of each row, to their lanes, one column after another.
    fn add_products(
        lanes: &'a mut [[f64; LANES]], numbers: &'a [f64], p: &'a usize, j: &'a usize, column: &'a usize,
        coefficients: &'a [f64]
    ) {
        let count = coefficients.len();
        // To the next column of the first lane.
        let head = ((LANES - *column % LANES) % LANES).min(count);
        for (lanes, row) in lanes.iter_mut().zip(numbers.chunks_exact(*p)) {
            let row = &row[*j..][..count];
            for (at, (x, c)) in row[..head].iter().zip(coefficients).enumerate() {
                lanes[(*column + at) % LANES] += x * c;
            }
            let (wholes, rest) = row[head..].as_chunks::<LANES>();
            let (by, last) = coefficients[head..].as_chunks::<LANES>();
            let mut sums = *lanes;
            for (x, c) in wholes.iter().zip(by) {
                for lane in 0..LANES {
                    sums[lane] += x[lane] * c[lane];
                }
            }
            for ((sum, x), c) in sums.iter_mut().zip(rest).zip(last) {
                *sum += x * c;
            }
            *lanes = sums;
        }
    }
}
