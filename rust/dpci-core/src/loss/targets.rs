//! The targets that a loss takes: two classes, an interval, or several classes.

/// Which targets a loss accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets {
    /// Two classes, coded -1 and 1.
    Signs,
    /// Real targets in the closed public interval.
    Interval {
        /// Least target.
        lower: f64,
        /// Greatest target.
        upper: f64,
    },
    /// Classes, coded 0, 1, ....
    Classes {
        /// Their number.
        count: usize,
    },
}

impl Targets {
    /// The least and the greatest target.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::Signs => [-1.0, 1.0],
            Self::Interval { lower, upper } => [lower, upper],
            Self::Classes { count } => [0.0, count as f64 - 1.0],
        }
    }
}

impl std::fmt::Display for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signs => f.write_str("two classes"),
            Self::Interval { lower, upper } => write!(f, "[{lower}, {upper}]"),
            Self::Classes { count } => write!(f, "{count} classes"),
        }
    }
}
