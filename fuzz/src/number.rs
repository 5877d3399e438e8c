//! Numbers as a fuzzer should choose them: any bit pattern, but often those at which code turns.

use arbitrary::{Arbitrary, Result, Unstructured};

/// A number of any kind.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub f64);

const CORNERS: [f64; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
    5e-324,
    f64::MAX,
    1.0 + f64::EPSILON,
];

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0_u8..=3)? {
            0 => f64::from_bits(u.arbitrary()?),
            1 => *u.choose(&CORNERS)?,
            2 => f64::from(u.arbitrary::<i8>()?) / 64.0,
            _ => f64::from(u.arbitrary::<u8>()?) * 10f64.powi(u.int_in_range(-40..=40)?),
        }))
    }
}

/// The numbers behind the wrappers.
#[must_use]
pub fn plain(numbers: &[Number]) -> Vec<f64> {
    numbers.iter().map(|number| number.0).collect()
}
