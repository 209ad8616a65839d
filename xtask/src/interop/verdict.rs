//! Whether what a subscriber printed is what its cell asks for.
//!
//! Best effort passes with at least one sample, none twice, in order; reliable with all of them.
//! Either way, both programs must have ended as they should.

use super::cell::Reliability;
use super::program::Ending;
use super::side::{COLOR, TOPIC};

/// What a run left behind.
pub(super) struct Observed<'a> {
    /// The subscriber's standard output.
    pub(super) printed: &'a str,
    pub(super) publisher: Ending,
    pub(super) subscriber: Ending,
}

/// What arrived, in words; an error when the cell fails, with what is wrong.
pub(super) fn judge(
    reliability: Reliability,
    samples: u32,
    observed: &Observed<'_>,
) -> Result<String, String> {
    let numbers = numbers(observed.printed)?;
    let received = format!("{} of {samples} samples", numbers.len());
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("{received}; {} came after {}", pair[1], pair[0]));
    }
    if numbers.last().is_some_and(|last| *last >= samples) {
        return Err(format!("{received}; more than were written"));
    }
    let enough = match reliability {
        Reliability::BestEffort => !numbers.is_empty(),
        Reliability::Reliable => numbers.len() == samples as usize,
    };
    if !enough {
        return Err(format!("{received}{}", first_missing(&numbers, samples)));
    }
    if observed.publisher != Ending::Exited(0) {
        return Err(format!(
            "{received}, but the publisher {}",
            observed.publisher
        ));
    }
    let may_be_stopped = reliability == Reliability::BestEffort;
    match observed.subscriber {
        Ending::Exited(0) => Ok(received),
        Ending::Stopped if may_be_stopped => Ok(received),
        ending => Err(format!("{received}, but the subscriber {ending}")),
    }
}

/// The running numbers (x) of the samples printed, in the order of arrival. A line is
/// `TOPIC COLOR x y [size]`; that an instance ended is no sample; any other line is an error.
fn numbers(printed: &str) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for line in printed.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        match words[..] {
            [TOPIC, COLOR, x, _y, size] if size.starts_with('[') => {
                numbers.push(
                    x.parse()
                        .map_err(|_| format!("not a running number: {line:?}"))?,
                );
            }
            [TOPIC, .., state] if state.starts_with("NOT_ALIVE_") => {}
            _ => return Err(format!("not a sample of {COLOR} {TOPIC}: {line:?}")),
        }
    }
    Ok(numbers)
}

fn first_missing(numbers: &[u32], samples: u32) -> String {
    (0..samples)
        .find(|number| !numbers.contains(number))
        .map_or_else(String::new, |number| {
            format!("; the first one missing is {number}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges a subscriber that received samples of these numbers, out of four.
    fn judge_numbers(
        reliability: Reliability,
        numbers: &[u32],
        subscriber: Ending,
    ) -> Result<String, String> {
        let printed = numbers
            .iter()
            .map(|x| format!("Square     BLUE       {x:03} {x:03} [20]\n"))
            .collect::<String>();
        judge(
            reliability,
            4,
            &Observed {
                printed: &printed,
                publisher: Ending::Exited(0),
                subscriber,
            },
        )
    }

    #[test]
    fn best_effort_passes_with_one_sample() {
        assert!(judge_numbers(Reliability::BestEffort, &[2], Ending::Stopped).is_ok());
        assert!(judge_numbers(Reliability::BestEffort, &[], Ending::Stopped).is_err());
    }

    #[test]
    fn reliable_passes_with_all_samples_only() {
        assert!(judge_numbers(Reliability::Reliable, &[0, 1, 2, 3], Ending::Exited(0)).is_ok());
        let fault =
            judge_numbers(Reliability::Reliable, &[0, 1, 3], Ending::Exited(1)).unwrap_err();
        assert_eq!(fault, "3 of 4 samples; the first one missing is 2");
    }

    #[test]
    fn a_sample_twice_or_out_of_order_fails() {
        for numbers in [&[0, 1, 1, 2][..], &[0, 2, 1, 3]] {
            assert!(judge_numbers(Reliability::BestEffort, numbers, Ending::Exited(0)).is_err());
            assert!(judge_numbers(Reliability::Reliable, numbers, Ending::Exited(0)).is_err());
        }
    }

    #[test]
    fn a_sample_nobody_wrote_fails() {
        assert!(judge_numbers(Reliability::BestEffort, &[0, 7], Ending::Exited(0)).is_err());
    }

    #[test]
    fn the_end_of_an_instance_is_no_sample_and_anything_else_is_a_fault() {
        let observed = |printed| Observed {
            printed,
            publisher: Ending::Exited(0),
            subscriber: Ending::Stopped,
        };
        let ended = "Square BLUE 000 000 [20]\nSquare BLUE NOT_ALIVE_NO_WRITERS_INSTANCE_STATE\n";
        assert_eq!(
            judge(Reliability::BestEffort, 4, &observed(ended)),
            Ok("1 of 4 samples".into())
        );
        for stray in [
            "Circle BLUE 000 000 [20]",
            "Square RED 000 000 [20]",
            "Square BLUE x y [20]",
            "oops",
        ] {
            assert!(
                judge(Reliability::BestEffort, 4, &observed(stray)).is_err(),
                "{stray}"
            );
        }
    }

    #[test]
    fn all_samples_do_not_make_up_for_a_program_that_failed() {
        let crashed = judge_numbers(Reliability::Reliable, &[0, 1, 2, 3], Ending::Crashed(11));
        assert_eq!(
            crashed.unwrap_err(),
            "4 of 4 samples, but the subscriber was ended by signal 11"
        );
        assert!(judge_numbers(Reliability::BestEffort, &[0], Ending::Exited(2)).is_err());
        assert!(judge_numbers(Reliability::Reliable, &[0, 1, 2, 3], Ending::Stopped).is_err());
    }
}
