//! Detectors of mistakes in releases: an audit of ε, tests of the noise's law, of the values' support, and of repeated noise.

mod epsilon;
mod law;
mod setting;
mod support;

/// Sentence of a detector.
pub(crate) type Finding = String;

/// A way to find mistakes from the outside: it sees released values and public specifications alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detector {
    /// Lower bounds on ε from runs on neighbouring data sets.
    EpsilonAudit,
    /// Goodness of fit of the noise of whole releases.
    LawTest,
    /// Which numbers can be released, and which neighbour they exclude.
    SupportTest,
    /// Equal noise in two releases.
    RepeatTest,
}

impl Detector {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::EpsilonAudit, Self::LawTest, Self::SupportTest, Self::RepeatTest];

    /// Findings of the detector; none where all is well.
    pub(crate) fn findings(self) -> Vec<Finding> {
        match self {
            Self::EpsilonAudit => epsilon::findings(),
            Self::LawTest => law::findings(),
            Self::SupportTest => support::findings(),
            Self::RepeatTest => support::repeats(),
        }
    }
}
