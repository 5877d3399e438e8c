//! The two random generators, kept apart by type: one for releases, one for simulations.

use std::convert::Infallible;
use std::fmt;

use chacha20::{ChaCha8Rng, ChaCha20Rng};
use rand::rngs::SysRng;
use rand::{Rng, SeedableRng, TryRng};
use zeroize::Zeroizing;

use crate::bugs::{Bug, active};
use crate::{Error, Result};

mod sealed {
    /// Closes [`super::NoiseGenerator`] to other crates and modules.
    pub trait Sealed {}
}

/// A source of random words for the samplers; implemented by the two generators of this file and by nothing else.
pub trait NoiseGenerator: Rng + sealed::Sealed {
    /// Takes a new key where one is due; to be called before numbers are drawn.
    fn refresh(&mut self) -> Result<()>;
}

/// Bytes after which a [`ReleaseGenerator`] takes a new key.
const BYTES_PER_KEY: u64 = 1 << 20;

/// Where keys come from.
type Source = fn(&mut [u8; 32]) -> std::result::Result<(), String>;

/// 256 bits from the operating system.
fn operating_system(key: &mut [u8; 32]) -> std::result::Result<(), String> {
    SysRng.try_fill_bytes(key).map_err(|error| error.to_string())
}

/// `ChaCha20` keyed by the operating system: the generator of every release.
///
/// It cannot be seeded by a caller, cloned or printed. Make a new one for each release: a process that forks between two
/// releases then never repeats its parent's noise, and threads share nothing. Within a release a new key is taken after each MiB.
/// Keys and the buffered words are overwritten when they are dropped.
pub struct ReleaseGenerator {
    words: ChaCha20Rng,
    /// Bytes given since the last key.
    given: u64,
    source: Source,
}

impl ReleaseGenerator {
    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system has none to give.
    pub fn new() -> Result<Self> {
        Self::from_source(operating_system)
    }

    fn from_source(source: Source) -> Result<Self> {
        Ok(Self {
            words: Self::keyed(source)?,
            given: 0,
            source,
        })
    }

    fn keyed(source: Source) -> Result<ChaCha20Rng> {
        if active(Bug::ReusedGenerator) {
            return Ok(ChaCha20Rng::from_seed([0; 32]));
        }
        let mut key = Zeroizing::new([0; 32]);
        source(&mut key).map_err(Error::Entropy)?;
        Ok(ChaCha20Rng::from_seed(*key))
    }
}

impl fmt::Debug for ReleaseGenerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReleaseGenerator(state hidden)")
    }
}

impl TryRng for ReleaseGenerator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        self.given += 4;
        self.words.try_next_u32()
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        self.given += 8;
        self.words.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        self.given += bytes.len() as u64;
        self.words.try_fill_bytes(bytes)
    }
}

impl sealed::Sealed for ReleaseGenerator {}

impl NoiseGenerator for ReleaseGenerator {
    fn refresh(&mut self) -> Result<()> {
        if self.given >= BYTES_PER_KEY {
            self.words = Self::keyed(self.source)?;
            self.given = 0;
        }
        Ok(())
    }
}

/// `ChaCha8` from a seed and a stream number: reproducible, for studies and tests. Its noise protects nothing.
///
/// Streams of one seed are independent of each other, so that work can be cut into streams in any order and on any number
/// of threads with the same result.
#[derive(Debug)]
pub struct SimulationGenerator(ChaCha8Rng);

impl SimulationGenerator {
    /// The generator of `seed`, at the start of `stream`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }
}

impl TryRng for SimulationGenerator {
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

impl sealed::Sealed for SimulationGenerator {}

impl NoiseGenerator for SimulationGenerator {
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Words that a test has written, over and over: for events that no seed would ever show.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct Scripted {
    words: Vec<u64>,
    next: usize,
}

#[cfg(test)]
impl Scripted {
    pub(super) fn new(words: Vec<u64>) -> Self {
        Self { words, next: 0 }
    }
}

#[cfg(test)]
impl TryRng for Scripted {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        self.next += 1;
        Ok(self.words[(self.next - 1) % self.words.len()])
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u64()?.to_be_bytes()[0];
        }
        Ok(())
    }
}

#[cfg(test)]
impl sealed::Sealed for Scripted {}

#[cfg(test)]
impl NoiseGenerator for Scripted {
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::noise::{Gaussian, Law};

    fn words(generator: &mut impl NoiseGenerator) -> [u64; 4] {
        std::array::from_fn(|_| generator.next_u64())
    }

    #[test]
    fn simulation_repeats_and_streams_differ() {
        let first = words(&mut SimulationGenerator::new(7, 0));
        assert_eq!(first, words(&mut SimulationGenerator::new(7, 0)));
        assert_ne!(first, words(&mut SimulationGenerator::new(7, 1)));
        assert_ne!(first, words(&mut SimulationGenerator::new(8, 0)));
        // Published studies name their seeds: the stream of a seed never changes.
        assert_eq!(first[0], 2_910_824_217_569_608_635);
    }

    #[test]
    fn releases_never_repeat_and_never_print_their_state() {
        let (mut first, mut second) = (ReleaseGenerator::new().unwrap(), ReleaseGenerator::new().unwrap());
        assert_ne!(words(&mut first), words(&mut second));
        assert_eq!(format!("{first:?}"), "ReleaseGenerator(state hidden)");
    }

    #[test]
    fn secrets_are_overwritten_when_dropped() {
        const fn overwrites<T: zeroize::ZeroizeOnDrop>() {}
        overwrites::<ChaCha20Rng>();
    }

    #[test]
    fn the_words_are_those_of_rfc_8439() {
        // Appendix A.1, test vector 1: key, counter and nonce zero.
        let mut generator = ReleaseGenerator::from_source(|_| Ok(())).unwrap();
        assert_eq!(words(&mut generator)[0], 0x903d_f1a0_ade0_b876);
    }

    thread_local! {
        static KEYS: Cell<u32> = const { Cell::new(0) };
    }

    /// Gives two keys, then none.
    fn two_keys(key: &mut [u8; 32]) -> std::result::Result<(), String> {
        KEYS.set(KEYS.get() + 1);
        key[0] = 1;
        if KEYS.get() <= 2 {
            Ok(())
        } else {
            Err("out of keys".to_owned())
        }
    }

    #[test]
    fn a_new_key_is_due_after_each_mebibyte_and_its_failure_is_an_error() {
        let failure = Error::Entropy("out of keys".to_owned());
        let mut generator = ReleaseGenerator::from_source(two_keys).unwrap();
        let first = words(&mut generator);
        generator.refresh().unwrap();
        assert_eq!(KEYS.get(), 1);
        let mut mebibyte = vec![0; 1 << 20];
        generator.fill_bytes(&mut mebibyte);
        generator.refresh().unwrap();
        assert_eq!((KEYS.get(), words(&mut generator)), (2, first));
        // A draw that would need a third key gives nothing.
        let law = Gaussian::new(100_000, 1.0).unwrap();
        assert_eq!(law.sample_bounded(&mut generator), Err(failure.clone()));
        let error = ReleaseGenerator::from_source(two_keys).unwrap_err();
        assert_eq!(error, failure);
        assert!(error.to_string().contains("out of keys"));
    }

    #[test]
    fn threads_share_no_words() {
        let draw = || words(&mut ReleaseGenerator::new().unwrap())[0];
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..100).map(|_| draw()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 800);
    }

    #[test]
    fn words_count_with_their_bytes() {
        // 2¹⁷ words of 8 bytes, or twice as many of 4, and not one fewer.
        for wide in [true, false] {
            KEYS.set(0);
            let mut generator = ReleaseGenerator::from_source(two_keys).unwrap();
            let mut take = |count: usize| {
                for _ in 0..count {
                    if wide {
                        generator.next_u64();
                    } else {
                        generator.next_u32();
                    }
                }
                generator.refresh().unwrap();
                KEYS.get()
            };
            let all = if wide { 1 << 17 } else { 1 << 18 };
            assert_eq!((take(all - 1), take(1)), (1, 2));
        }
        KEYS.set(0);
        let mut generator = ReleaseGenerator::from_source(two_keys).unwrap();
        for (bytes, keys) in [((1 << 20) - 1, 1), (1, 2)] {
            generator.fill_bytes(&mut vec![0; bytes]);
            generator.refresh().unwrap();
            assert_eq!(KEYS.get(), keys);
        }
    }
}
