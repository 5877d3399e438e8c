//! The two random generators, kept apart by type: one for releases, one for simulations.

use std::convert::Infallible;
use std::fmt;

use rand::rngs::SysRng;
use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};

use crate::bugs::{Bug, active};
use crate::{Error, Result};

mod sealed {
    /// Closes [`super::NoiseGenerator`] to other crates and modules.
    pub trait Sealed {}
}

/// A source of random words for the samplers; implemented by the two generators of this file and by nothing else.
pub trait NoiseGenerator: Rng + sealed::Sealed {
    /// Whether noise drawn from it protects the data: true only for [`ReleaseGenerator`].
    const PRIVATE: bool;
}

/// `ChaCha20` seeded by the operating system: the generator of every release.
///
/// It cannot be seeded by a caller, cloned or printed. Make a new one for each release: a process that forks between two
/// releases then never repeats its parent's noise.
pub struct ReleaseGenerator(ChaCha20Rng);

impl ReleaseGenerator {
    /// Draws 256 bits of seed from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system has none to give.
    pub fn new() -> Result<Self> {
        if active(Bug::ReusedGenerator) {
            return Ok(Self(ChaCha20Rng::from_seed([0; 32])));
        }
        ChaCha20Rng::try_from_rng(&mut SysRng)
            .map(Self)
            .map_err(|error| Error::Entropy(error.to_string()))
    }
}

impl fmt::Debug for ReleaseGenerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReleaseGenerator(state hidden)")
    }
}

/// `ChaCha8` from a seed and a stream number: reproducible, for studies and tests. Its noise protects nothing.
///
/// Streams of one seed are independent of each other, so that work can be cut into streams in any order and on any number
/// of threads with the same result.
#[derive(Debug, Clone)]
pub struct SimulationGenerator(ChaCha8Rng);

impl SimulationGenerator {
    /// The generator of `seed`, at the start of `stream`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }
}

macro_rules! impl_noise_generator {
    ($generator:ty, $private:literal) => {
        impl TryRng for $generator {
            type Error = Infallible;

            fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
                self.0.try_next_u32()
            }

            fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
                self.0.try_next_u64()
            }

            fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
                self.0.try_fill_bytes(bytes)
            }
        }

        impl sealed::Sealed for $generator {}

        impl NoiseGenerator for $generator {
            const PRIVATE: bool = $private;
        }
    };
}

impl_noise_generator!(ReleaseGenerator, true);
impl_noise_generator!(SimulationGenerator, false);

#[cfg(test)]
mod tests {
    use super::*;

    fn words(generator: &mut impl NoiseGenerator) -> [u64; 4] {
        std::array::from_fn(|_| generator.next_u64())
    }

    #[test]
    fn simulation_repeats_and_streams_differ() {
        let first = words(&mut SimulationGenerator::new(7, 0));
        assert_eq!(first, words(&mut SimulationGenerator::new(7, 0)));
        assert_ne!(first, words(&mut SimulationGenerator::new(7, 1)));
        assert_ne!(first, words(&mut SimulationGenerator::new(8, 0)));
    }

    #[test]
    fn releases_never_repeat_and_never_print_their_state() {
        let (mut first, mut second) = (
            ReleaseGenerator::new().unwrap(),
            ReleaseGenerator::new().unwrap(),
        );
        assert_ne!(words(&mut first), words(&mut second));
        assert_eq!(format!("{first:?}"), "ReleaseGenerator(state hidden)");
    }
}
