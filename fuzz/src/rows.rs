//! Rows of any structure and content: what the check lets through obeys its bounds, and merging keeps the records.

use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use dpci_core::design::{Csr, Design, OnViolation, RowBounds, Rows};
use dpci_core::exec::Executor;
use dpci_core::loss::Targets;
use dpci_core::row_domain::RowDomain;

use crate::number::{Number, plain};

/// Raw parts of a data set.
#[derive(Debug, Arbitrary)]
pub struct Input {
    sparse: bool,
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<Number>,
    n_columns: u8,
    targets: Vec<Number>,
    intercept: Option<Number>,
    row_norm: Number,
    interval: Option<(Number, Number)>,
    clip: bool,
}

/// Checks, clips, merges and reads back.
///
/// # Panics
/// If a row that was let through breaks its bound, or a record is lost.
pub fn run(input: Input) {
    let (values, targets) = (plain(&input.values), plain(&input.targets));
    let n_columns = usize::from(input.n_columns);
    let rows = if input.sparse {
        match Csr::new(input.starts, input.columns, values, n_columns) {
            Ok(csr) => Rows::Csr(csr),
            Err(_) => return,
        }
    } else {
        Rows::dense(&values, n_columns)
    };
    let bounds = RowBounds {
        rows: RowDomain::Ball(input.row_norm.0),
        targets: input
            .interval
            .map_or(Targets::Signs, |(lower, upper)| Targets::Interval {
                lower: lower.0,
                upper: upper.0,
            }),
        on_violation: if input.clip {
            OnViolation::Clip
        } else {
            OnViolation::Error
        },
    };
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    // The public numbers are checked by `Spec` and by the Python side before any rows are looked at.
    let public = input.row_norm.0 > 0.0 && input.row_norm.0.is_finite();
    let scale = input
        .intercept
        .map(|scale| scale.0)
        .filter(|s| *s > 0.0 && s.is_finite());
    let ordered = input
        .interval
        .is_none_or(|(lower, upper)| lower.0 <= upper.0);
    if !public || !ordered {
        return;
    }
    let Ok(design) = Design::new(rows, &targets, scale, &bounds, &exec) else {
        return;
    };
    check(&design, &bounds, scale);
    let Ok(merged) = design.merged(&exec) else {
        panic!("rows that were checked cannot be merged");
    };
    check(&merged, &bounds, scale);
    let records = match merged.multiplicities() {
        None => merged.n_rows(),
        Some(counts) => counts.iter().map(|count| *count as usize).sum(),
    };
    assert_eq!(records, targets.len());
    assert_eq!(design.owned().n_rows(), design.n_rows());
}

fn check(design: &Design<'_>, bounds: &RowBounds, intercept: Option<f64>) {
    let (n, k) = (design.n_rows(), design.n_params());
    let mut all = vec![f64::NAN; n * k];
    design.write_rows(0..n, &mut all);
    for row in all.chunks(k) {
        let features = &row[..k - usize::from(intercept.is_some())];
        let greatest = features.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        assert!(features.iter().all(|x| x.is_finite()));
        if greatest > 0.0 {
            let scaled = features.iter().map(|x| (x / greatest).powi(2)).sum::<f64>();
            let norm = scaled.sqrt() * greatest;
            let room = 1.0 + (k as f64 + 8.0) * f64::EPSILON;
            // A subnormal bound has fewer digits than the room.
            assert!(
                norm <= bounds.rows.norm() * room + 1e-320,
                "{norm:e} above {:e}",
                bounds.rows.norm()
            );
        }
    }
    for target in design.targets(0..n) {
        match bounds.targets {
            Targets::Signs => assert!(target.abs() == 1.0),
            Targets::Interval { lower, upper } => assert!(*target >= lower && *target <= upper),
        }
    }
}
