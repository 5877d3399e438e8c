//! Ten seeded mistakes, each found by its detector, and every detector silent without one.
//!
//! A detector gives a false alarm with probability at most 1e-6 a statement, over the seeds, which were fixed once.

mod detectors;

use std::fmt::Write as _;

use detectors::{Detector, Finding};
use dpci_core::bugs::{Bug, MARK, with};

/// Each mistake with the detector that has to find it.
const FOUND_BY: [(Bug, Detector); 10] = [
    (Bug::HalfNoise, Detector::EpsilonAudit),
    (Bug::WrongSensitivity, Detector::EpsilonAudit),
    (Bug::LostRootTwo, Detector::EpsilonAudit),
    (Bug::ForgottenCurvature, Detector::EpsilonAudit),
    (Bug::RadiusDimension, Detector::LawTest),
    (Bug::SquareDimension, Detector::LawTest),
    (Bug::ClippedTail, Detector::LawTest),
    (Bug::StaleDraw, Detector::LawTest),
    (Bug::SkippedSeal, Detector::SupportTest),
    (Bug::ReusedGenerator, Detector::RepeatTest),
];

#[test]
fn detectors_are_silent_without_a_mistake() {
    for detector in Detector::ALL {
        let found = with(None, || detector.findings());
        assert!(found.is_empty(), "{detector:?}: {found:?}");
    }
}

#[test]
fn every_mistake_is_found_by_its_detector() {
    let mut table = String::from("| mistake | detector | what it says |\n|---|---|---|\n");
    for (bug, detector) in FOUND_BY {
        let found: Vec<Finding> = with(Some(bug), || detector.findings());
        let words = found.first().unwrap_or_else(|| panic!("{detector:?} misses {bug:?}"));
        writeln!(table, "| {bug:?} | {detector:?} | {words} |").unwrap();
    }
    // The log of `make prove`.
    println!("{table}");
}

#[test]
fn a_mistake_ends_with_its_block() {
    let detector = Detector::RepeatTest;
    assert!(!with(Some(Bug::ReusedGenerator), || detector.findings()).is_empty());
    let caught = std::panic::catch_unwind(|| with(Some(Bug::ReusedGenerator), || panic!("inside")));
    assert!(caught.is_err());
    assert!(detector.findings().is_empty());
}

#[test]
fn a_binary_with_the_feature_carries_the_mark() {
    // So the Python test that finds no mark in the installed extension could fail.
    let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(binary.windows(MARK.len()).any(|bytes| bytes == MARK.as_bytes()));
}
