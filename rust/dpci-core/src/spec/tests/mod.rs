//! Calibrations against numbers by hand, and what is refused before any data are seen.

mod baselines;
mod calibration;
mod choices;
mod domain;
mod moment_matrix;
mod moments;
mod plans;
mod reports;
mod seals;
mod tuning;

use std::sync::Arc;

use super::testing::*;
use super::{Choices, Moments, Projection, Spec, Variant};
use crate::loss::Logistic;
use crate::privacy::{Budget, Calibration, Neighbors, Perturbation};
