//! Finding the parameters from measurements.

use super::{Circumstances, Extents, Profile};
use crate::group::Method;

/// How many times all parameters are gone through. They depend on each other little, so that this
/// is plenty.
const SWEEPS: usize = 200;

/// What the parameter's former value weighs against the samples, of which each weighs 1. It decides
/// where no sample says anything.
const FORMER: f64 = 1e-3;

/// Errors beyond this share of the measured time count no more than in proportion (Huber 1964):
/// what was interrupted takes any time.
const OUTLIER: f64 = 0.25;

/// A group that was carried out, and the time it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How.
    pub method: Method,
    /// What; blocks of [`Method::Each`] are taken to be of one size.
    pub size: Extents,
    /// The window, for [`Method::Window`].
    pub window_bytes: u64,
    /// Under which circumstances.
    pub now: Circumstances,
    /// Measured nanoseconds.
    pub ns: f64,
}

impl Sample {
    /// What a profile says that it takes.
    #[must_use]
    pub fn predicted_ns(&self, profile: &Profile) -> f64 {
        profile.group_ns(self.method, &self.size, self.window_bytes, &self.now)
    }
}

type Parameter = fn(&mut Profile) -> &mut f64;

/// The parameters that are times. Counts and sizes are known, not measured.
const PARAMETERS: [Parameter; 17] = [
    |profile| &mut profile.read.call_ns,
    |profile| &mut profile.read.page_ns,
    |profile| &mut profile.read.byte_ns,
    |profile| &mut profile.write.call_ns,
    |profile| &mut profile.write.page_ns,
    |profile| &mut profile.write.byte_ns,
    |profile| &mut profile.device.latency_ns,
    |profile| &mut profile.device.byte_ns,
    |profile| &mut profile.copy.block_ns,
    |profile| &mut profile.copy.byte_ns,
    |profile| &mut profile.copy.far_byte_ns,
    |profile| &mut profile.map.call_ns,
    |profile| &mut profile.map.block_ns,
    |profile| &mut profile.map.page_ns,
    |profile| &mut profile.map.byte_ns,
    |profile| &mut profile.vector_entry_ns,
    |profile| &mut profile.lock_ns,
];

impl Profile {
    /// The profile that explains measured times best, starting from this one: the sum of squared
    /// relative errors is least, with less weight to what cannot be explained. Parameters on which
    /// no sample depends stay as they are. Samples without a positive, finite time are left out.
    #[must_use]
    pub fn fitted(&self, samples: &[Sample]) -> Profile {
        let sound = |sample: &&Sample| sample.ns.is_finite() && sample.ns > 0.0;
        let samples: Vec<&Sample> = samples.iter().filter(sound).collect();
        let mut profile = *self;
        let mut former = *self;
        for _ in 0..SWEEPS {
            for parameter in PARAMETERS {
                let prior = *parameter(&mut former);
                let best = best(&profile, parameter, prior, &samples);
                *parameter(&mut profile) = best;
            }
        }
        profile
    }
}

/// The best value of one parameter, the others being as they are. The predictions are linear in it,
/// so that this is a division.
fn best(profile: &Profile, parameter: Parameter, prior: f64, samples: &[&Sample]) -> f64 {
    let mut trial = *profile;
    let now = *parameter(&mut trial);
    // A step large enough to be seen and small enough not to meet a limit of the model.
    let step = (now * 0.01).max(prior * 0.01).max(1e-6);
    *parameter(&mut trial) = now + step;
    // Relative to the larger, so that a former value that is far off holds nothing back.
    let scale = 1.0 / prior.max(now).max(1e-6);
    let (mut above, mut below) = (FORMER * scale * scale * (prior - now), FORMER * scale * scale);
    for sample in samples {
        let predicted = sample.predicted_ns(profile);
        let slope = (sample.predicted_ns(&trial) - predicted) / step / sample.ns;
        let error = (sample.ns - predicted) / sample.ns;
        let weight = (OUTLIER / error.abs().max(f64::MIN_POSITIVE)).min(1.0);
        above += weight * slope * error;
        below += weight * slope * slope;
    }
    (now + above / below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Access;
    use crate::model::{CopyCost, Device, RequestCost, Warmth};

    fn truth() -> Profile {
        let default = Profile::default();
        Profile {
            read: RequestCost { call_ns: 900.0, page_ns: 20.0, byte_ns: 0.2 },
            write: RequestCost { call_ns: 5000.0, page_ns: 300.0, byte_ns: 0.1 },
            device: Device { latency_ns: 2e6, byte_ns: 9.0, ..default.device },
            copy: CopyCost { block_ns: 8.0, byte_ns: 0.1, far_byte_ns: 0.3, ..default.copy },
            vector_entry_ns: 55.0,
            lock_ns: 300.0,
            ..default
        }
    }

    /// Samples over a grid of shapes, timed by `truth` with some noise.
    fn samples(truth: &Profile, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        for access in [Access::Read, Access::Write] {
            for warmth in [Warmth::Warm, Warmth::Cold] {
                for block in [8.0, 512.0, 4096.0, 65536.0] {
                    for stride in [2.0 * block, 8.0 * block + 1000.0] {
                        for method in [Method::Each, Method::Window, Method::Vector] {
                            for (blocks, window_bytes) in [(2.0, 1 << 16), (100.0, 4 << 20)] {
                                let file = (blocks - 1.0) * stride + block;
                                let data = blocks * block;
                                let size = Extents { file, data, blocks };
                                let locked = blocks > 50.0;
                                let now = Circumstances { access, warmth, in_flight: 1, locked };
                                let mut sample =
                                    Sample { method, size, window_bytes, now, ns: 0.0 };
                                sample.ns = sample.predicted_ns(truth) * noise(samples.len());
                                samples.push(sample);
                            }
                        }
                    }
                }
            }
        }
        samples
    }

    fn worst(profile: &Profile, truth: &Profile) -> f64 {
        let exact = samples(truth, |_| 1.0);
        let errors =
            exact.iter().map(|sample| (sample.predicted_ns(profile) / sample.ns).ln().abs());
        errors.fold(0.0, f64::max).exp()
    }

    #[test]
    fn exact_times_give_a_profile_that_predicts_them() {
        let truth = truth();
        assert!(worst(&Profile::default(), &truth) > 4.0, "nothing to be found");
        let fitted = Profile::default().fitted(&samples(&truth, |_| 1.0));
        assert!(worst(&fitted, &truth) < 1.06, "{fitted:?}: {}", worst(&fitted, &truth));
        assert_eq!(fitted.check(), Ok(()));
    }

    #[test]
    fn noise_and_interruptions_do_not_lead_it_astray() {
        let truth = truth();
        // 10 % either way, and one of nine takes five times as long.
        let noise = |n: usize| match n * 7 % 9 {
            0 => 5.0,
            n => 0.9 + 0.2 * (n % 3) as f64 / 2.0,
        };
        let fitted = Profile::default().fitted(&samples(&truth, noise));
        assert!(worst(&fitted, &truth) < 1.35, "{fitted:?}: {}", worst(&fitted, &truth));
    }

    #[test]
    fn what_was_not_measured_stays_as_it_was() {
        let truth = truth();
        let mut some = samples(&truth, |_| 1.0);
        some.retain(|sample| {
            sample.now.access == Access::Read && sample.now.warmth == Warmth::Warm
        });
        some.push(Sample { ns: f64::NAN, ..some[0] });
        let fitted = Profile::default().fitted(&some);
        let default = Profile::default();
        assert_eq!((fitted.write, fitted.device), (default.write, default.device));
        assert_eq!(fitted.lock_ns, default.lock_ns);
        assert_eq!(default.fitted(&[]), default);
    }
}
