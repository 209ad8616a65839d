//! Parsed output of a run's two programs, and the checks of the cases on it.

/// Ok, or the objection.
pub(crate) type Judgement = Result<(), String>;

/// Minimum number of samples that must arrive. The publisher writes more in its three seconds; those written before
/// discovery is complete do not arrive.
const MIN_SAMPLES: usize = 5;

/// Ok where it holds, else the objection.
pub(crate) fn require(holds: bool, objection: impl FnOnce() -> String) -> Judgement {
    holds.then_some(()).ok_or_else(objection)
}

fn some(samples: &[Sample]) -> Judgement {
    at_least(MIN_SAMPLES, samples)
}

pub(crate) fn at_least(minimum: usize, samples: &[Sample]) -> Judgement {
    let count = samples.len();
    require(count >= minimum, || {
        format!("{count} samples came instead of at least {minimum}")
    })
}

pub(crate) fn flows(sides: &Sides, color: &str) -> Judgement {
    let mut samples = sides.subscriber.samples();
    samples.retain(|sample| sample.color == color);
    some(&samples).map_err(|few| format!("{color}: {few}"))?;
    let is_within =
        |sample: &Sample| (0..=240).contains(&sample.x) && (0..=270).contains(&sample.y);
    each(&samples, "that is within the plane", is_within)?;
    matched(sides)
}

/// Checks that each sample is as `wanted` describes.
pub(crate) fn each(
    samples: &[Sample],
    wanted: &str,
    is_wanted: impl Fn(&Sample) -> bool,
) -> Judgement {
    match samples.iter().find(|sample| !is_wanted(sample)) {
        Some(other) => Err(format!("not a sample {wanted}: {other:?}")),
        None => Ok(()),
    }
}

/// Checks that every two consecutive samples are as `wanted` describes.
pub(crate) fn each_pair(
    samples: &[Sample],
    wanted: &str,
    follows: impl Fn(&Sample, &Sample) -> bool,
) -> Judgement {
    let mut pairs = samples.windows(2);
    match pairs.find(|pair| !follows(&pair[0], &pair[1])) {
        Some(pair) => Err(format!("not {wanted}: {:?} after {:?}", pair[1], pair[0])),
        None => Ok(()),
    }
}

pub(crate) fn all_flow(sides: &Sides, colors: &[&str]) -> Judgement {
    colors.iter().try_for_each(|color| flows(sides, color))
}

pub(crate) fn red_flows(sides: &Sides) -> Judgement {
    flows(sides, "RED")
}

/// Checks that each program reported something: its listener, and the end of the listener's line.
fn reported(sides: [(&Printed, &str, &str); 2]) -> Judgement {
    for (side, listener, words) in sides {
        let reported = side.reported(listener);
        require(reported.iter().any(|line| line.ends_with(words)), || {
            format!("{listener} reported {reported:?} instead of {words}")
        })?;
    }
    Ok(())
}

pub(crate) fn matched(sides: &Sides) -> Judgement {
    let (readers, writers) = (
        "matched readers 1 (change = 1)",
        "matched writers 1 (change = 1)",
    );
    reported([
        (&sides.publisher, "on_publication_matched", readers),
        (&sides.subscriber, "on_subscription_matched", writers),
    ])
}

pub(crate) fn incompatible(sides: &Sides, policy: &str) -> Judgement {
    reported([
        (&sides.publisher, "on_offered_incompatible_qos", policy),
        (&sides.subscriber, "on_requested_incompatible_qos", policy),
    ])?;
    nothing_flows(sides)
}

pub(crate) fn nothing_flows(sides: &Sides) -> Judgement {
    let some = sides.subscriber.samples().len();
    require(some == 0, || format!("{some} samples came instead of none"))
}

/// Endpoints without a common partition are not incompatible: neither side reports anything.
pub(crate) fn apart(sides: &Sides) -> Judgement {
    let reported = [
        sides.publisher.reported("on_offered_incompatible_qos"),
        sides.subscriber.reported("on_requested_incompatible_qos"),
    ];
    not_called(reported.concat())?;
    unmatched(sides)
}

/// Checks that neither side reports a match, and that no sample arrives.
pub(crate) fn unmatched(sides: &Sides) -> Judgement {
    let reported = [
        sides.publisher.reported("on_publication_matched"),
        sides.subscriber.reported("on_subscription_matched"),
    ];
    not_called(reported.concat())?;
    nothing_flows(sides)
}

fn not_called(reported: Vec<&str>) -> Judgement {
    match reported.first() {
        Some(line) => Err(format!("a listener was called: {line}")),
        None => Ok(()),
    }
}

pub(crate) fn all_that_was_printed_arrives(sides: &Sides) -> Judgement {
    some(&sides.subscriber.samples())?;
    ends_as_written(sides)
}

/// The samples that arrived are the last that were written: those written before the match are lost.
pub(crate) fn ends_as_written(sides: &Sides) -> Judgement {
    let (written, taken) = (sides.publisher.samples(), sides.subscriber.samples());
    require(written.ends_with(&taken), || {
        let (written, taken) = (written.len(), taken.len());
        format!("{written} written; the {taken} taken are not the last of them")
    })
}

/// Far fewer samples than were written, but some.
pub(crate) fn few_of_many(sides: &Sides) -> Judgement {
    const MOST: usize = 60;
    let samples = sides.subscriber.samples();
    match samples.len() {
        0..=2 => Err(format!("{} samples came", samples.len())),
        3..=MOST => Ok(()),
        many => Err(format!("{many} samples came instead of at most {MOST}")),
    }
}

/// A read (not taken) sample stays and is read again.
pub(crate) fn repeats(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    require(samples.windows(2).any(|pair| pair[0] == pair[1]), || {
        "no sample was read twice".into()
    })
}

/// Two instances that are written alternately arrive alternately.
pub(crate) fn alternates(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    each_pair(&samples, "alternate instances", |before, sample| {
        before.color != sample.color
    })
}

/// Line that a subscriber prints at each read of coherent sets.
const LOOKS_AT_SETS: &str = "Reading coherent sets";

/// Each read returns whole sets, with `size` iterations of each topic.
pub(crate) fn whole_sets(sides: &Sides, size: usize) -> Judgement {
    for line in ["Started Coherent Set", "Finished Coherent Set"] {
        require(sides.publisher.has(line), || {
            format!("the publisher did not print: {line}")
        })?;
    }
    some(&sides.subscriber.samples())?;
    for round in sides.subscriber.rounds(LOOKS_AT_SETS) {
        for topic in ["Square", "Square1"] {
            let count = round.iter().filter(|it| it.topic == topic).count();
            require(count % size == 0, || {
                format!("{count} samples of {topic} came at once: no whole sets")
            })?;
        }
    }
    Ok(())
}

/// From the first set of the second topic on, both topics arrive together.
pub(crate) fn sets_of_both_topics(sides: &Sides) -> Judgement {
    let rounds = sides.subscriber.rounds(LOOKS_AT_SETS);
    let of = |round: &[Sample], topic: &str| round.iter().filter(|it| it.topic == topic).count();
    let both = rounds.iter().skip_while(|round| of(round, "Square1") == 0);
    let (mut some, mut apart) = (0, 0);
    for round in both {
        let (one, other) = (of(round, "Square"), of(round, "Square1"));
        some += one;
        apart += usize::from(one != other);
    }
    match (some, apart) {
        (0, _) => Err("nothing came of both topics".into()),
        (_, 0) => Ok(()),
        _ => Err(format!("{apart} reads returned an incomplete set")),
    }
}

/// Samples of two topics, written alternately with growing sizes, arrive in the order of writing.
pub(crate) fn in_order_of_writing(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    let topics = ["Square", "Square1"].map(|topic| samples.iter().any(|it| it.topic == topic));
    require(topics == [true; 2], || {
        format!("not both topics have samples: {topics:?}")
    })?;
    let begin = samples.iter().position(|it| it.topic == "Square1");
    let both = &samples[begin.unwrap_or(0)..];
    each_pair(both, "the order of writing", |before, sample| {
        (before.size, &before.topic) < (sample.size, &sample.topic)
    })
}

pub(crate) fn three_topics(sides: &Sides) -> Judgement {
    for topic in ["Square", "Square1", "Square2"] {
        let mut samples = sides.subscriber.samples();
        samples.retain(|sample| sample.topic == topic);
        some(&samples).map_err(|few| format!("{topic}: {few}"))?;
    }
    Ok(())
}

pub(crate) fn sizes(sides: &Sides, follows: fn(i32, i32) -> bool) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    each_pair(&samples, "the expected sizes", |before, sample| {
        follows(before.size, sample.size)
    })
}

pub(crate) fn payload(sides: &Sides) -> Judgement {
    red_flows(sides)?;
    unchanged(&sides.subscriber.samples())
}

pub(crate) fn unchanged(samples: &[Sample]) -> Judgement {
    each(samples, "as it was written", |sample| {
        sample.payload == Some(255)
    })
}

pub(crate) fn only(sides: &Sides, is_wanted: fn(&Sample) -> bool) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    each(&samples, "that the filter selects", is_wanted)
}

pub(crate) fn ends(sides: &Sides, state: &str) -> Judgement {
    red_flows(sides)?;
    tells_end(sides, state)
}

/// The subscriber reported the end of an instance.
pub(crate) fn tells_end(sides: &Sides, state: &str) -> Judgement {
    require(sides.subscriber.ends(state) > 0, || {
        format!("no instance became {state}")
    })
}

/// Checks whether the publisher and the subscriber reported missed deadlines.
pub(crate) fn missed(sides: &Sides, expected: [bool; 2]) -> Judgement {
    let offered = sides.publisher.reported("on_offered_deadline_missed");
    let requested = sides.subscriber.reported("on_requested_deadline_missed");
    let reported = [!offered.is_empty(), !requested.is_empty()];
    require(reported == expected, || {
        format!(
            "missed deadlines reported by [publisher, subscriber]: {reported:?} instead of {expected:?}"
        )
    })
}

pub(crate) fn from_the_first(sides: &Sides) -> Judgement {
    sizes(sides, |before, size| size == before + 1)?;
    begins_with_the_first(sides)
}

pub(crate) fn not_from_the_first(sides: &Sides) -> Judgement {
    some(&sides.subscriber.samples())?;
    begins_after_the_first(sides)
}

/// The first sample that arrived is the first that was written, which has the size 1.
pub(crate) fn begins_with_the_first(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    let first = samples.first();
    require(first.is_some_and(|first| first.size == 1), || {
        format!("the first sample that arrived is {first:?}, not the first one written")
    })
}

pub(crate) fn begins_after_the_first(sides: &Sides) -> Judgement {
    require(begins_with_the_first(sides).is_err(), || {
        "it begins with the first sample".into()
    })
}

/// Sample that a program printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) topic: String,
    pub(crate) color: String,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) size: i32,
    /// Last byte of the payload, if any.
    pub(crate) payload: Option<u8>,
}

/// Output of a program.
pub(crate) struct Printed {
    lines: Vec<String>,
}

impl Printed {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            lines: text.lines().map(String::from).collect(),
        }
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.lines.last().map(String::as_str)
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.lines.iter().any(|there| there == line)
    }

    /// Lines of this listener, without its name.
    pub(crate) fn reported(&self, listener: &str) -> Vec<&str> {
        let lines = self.lines.iter();
        lines
            .filter_map(|line| line.strip_prefix(listener)?.strip_prefix("() "))
            .collect()
    }

    /// Lines of this listener before the last sample: those that a publisher printed while it wrote.
    pub(crate) fn reported_before_the_last_sample(&self, listener: &str) -> Vec<&str> {
        let last = self.lines.iter().rposition(|line| sample(line).is_some());
        let before = Self {
            lines: self.lines[..last.unwrap_or(self.lines.len())].to_vec(),
        };
        let count = before.reported(listener).len();
        self.reported(listener).into_iter().take(count).collect()
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.lines.iter().filter_map(|line| sample(line)).collect()
    }

    /// Samples between lines with this beginning.
    pub(super) fn rounds(&self, begin: &str) -> Vec<Vec<Sample>> {
        let mut rounds = vec![Vec::new()];
        for line in &self.lines {
            match sample(line) {
                _ if line.starts_with(begin) => rounds.push(Vec::new()),
                Some(sample) => rounds
                    .last_mut()
                    .into_iter()
                    .for_each(|it| it.push(sample.clone())),
                None => {}
            }
        }
        rounds
    }

    /// Number of lines that report an instance in this state.
    pub(crate) fn ends(&self, state: &str) -> usize {
        let word = format!("NOT_ALIVE_{state}_INSTANCE_STATE");
        self.lines
            .iter()
            .filter(|line| line.ends_with(&word))
            .count()
    }
}

/// `topic color x y [size] {payload}`
fn sample(line: &str) -> Option<Sample> {
    let mut words = line.split_whitespace();
    let (topic, color) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (x, y) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let size = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
    let payload = match words.next() {
        None => None,
        Some(word) => Some(word.strip_prefix('{')?.strip_suffix('}')?.parse().ok()?),
    };
    Some(Sample {
        topic,
        color,
        x,
        y,
        size: size.parse().ok()?,
        payload,
    })
}

/// Output of both programs.
pub(crate) struct Sides {
    pub(crate) publisher: Printed,
    pub(crate) subscriber: Printed,
    /// True when no sample arrives whole without repair, because some of its fragments are always lost.
    pub(crate) needs_repair: bool,
    /// Segmented bursts that isolane's publisher reports; `None` for another vendor, and for samples in one datagram.
    pub(crate) segmented: Option<u64>,
}

impl Sides {
    /// Checks that hold for every run: both sides report success, and the subscriber created its topic and reader.
    pub(super) fn check_ends(&self) -> Judgement {
        for (side, name) in [
            (&self.publisher, "publisher"),
            (&self.subscriber, "subscriber"),
        ] {
            let last = side.last();
            require(last == Some("Done."), || {
                format!("the {name} does not end with `Done.`, but with {last:?}")
            })?;
        }
        let created = ["Create topic: Square", "Create reader for topic: Square"];
        match created.iter().find(|line| !self.subscriber.has(line)) {
            Some(line) => Err(format!("the subscriber did not print: {line}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(publisher: &str, subscriber: &str) -> Sides {
        Sides {
            publisher: Printed::of(publisher),
            subscriber: Printed::of(subscriber),
            needs_repair: false,
            segmented: None,
        }
    }

    fn sample(topic: &str, size: i32) -> String {
        format!("{topic:<10} RED        010 010 [{size}]\n")
    }

    fn printed(samples: &[(&str, i32)]) -> String {
        let samples = samples.iter();
        samples.map(|&(topic, size)| sample(topic, size)).collect()
    }

    fn looks(rounds: &[&[(&str, i32)]]) -> String {
        let round = |round: &&[_]| format!("{LOOKS_AT_SETS}, iteration 1\n{}", printed(round));
        rounds.iter().map(round).collect()
    }

    #[test]
    fn a_case_is_judged_by_what_was_printed() {
        let flowing: String = (1..=6)
            .map(|n| format!("Square     RED        {n:03} 010 [{n}]\n"))
            .collect();
        let matched = "on_publication_matched() topic: 'Square'  type: 'ShapeType' : matched readers 1 (change = 1)\n";
        let subscribed = "on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1 (change = 1)\n";
        let good = sides(matched, &format!("{subscribed}{flowing}"));
        assert_eq!(red_flows(&good), Ok(()));
        assert!(apart(&good).is_err() && nothing_flows(&good).is_err());
        assert_eq!(from_the_first(&good), Ok(()));
        assert!(not_from_the_first(&good).is_err());
        assert!(repeats(&good).is_err());
        assert!(red_flows(&sides("", &flowing)).is_err());
        assert!(flows(&good, "BLUE").is_err());
        assert!(ends(&good, "DISPOSED").is_err());
        assert!(good.check_ends().is_err());
        let offered =
            "on_offered_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 4 (DEADLINE)\n";
        let requested =
            "on_requested_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 4 (DEADLINE)\n";
        assert_eq!(
            incompatible(&sides(offered, requested), "4 (DEADLINE)"),
            Ok(())
        );
        assert!(incompatible(&sides(offered, ""), "4 (DEADLINE)").is_err());
        assert!(incompatible(&sides(offered, requested), "6 (OWNERSHIP)").is_err());
    }

    #[test]
    fn a_part_of_a_set_is_seen() {
        let published = "Started Coherent Set\nFinished Coherent Set\n";
        let (one, other) = (("Square", 1), ("Square1", 1));
        let whole = looks(&[&[], &[one; 4], &[one, one, other, other], &[]]);
        let judged = sides(published, &whole);
        assert_eq!(whole_sets(&judged, 2), Ok(()));
        assert_eq!(sets_of_both_topics(&judged), Ok(()));
        assert!(whole_sets(&sides("", &whole), 2).is_err());
        let torn = looks(&[&[one; 4], &[one], &[one, other, other]]);
        assert!(whole_sets(&sides(published, &torn), 2).is_err());
        assert!(sets_of_both_topics(&sides(published, &torn)).is_err());
    }

    #[test]
    fn what_comes_out_of_its_order_is_seen() {
        let judge = |places: &[(&str, i32)]| in_order_of_writing(&sides("", &printed(places)));
        // Samples of the first topic before the second is matched are not judged.
        let begun = [("Square", 7), ("Square1", 7), ("Square", 8), ("Square1", 8)];
        assert_eq!(judge(&begun), Ok(()));
        assert!(judge(&[("Square1", 7), ("Square1", 8), ("Square", 8)]).is_err());
        assert!(judge(&begun[..1]).is_err());
    }

    const TEXT: &str = "Create topic: Square
Create reader for topic: Square
on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1 (change = 1)
Square     RED        015 009 [20]
Square     RED        020 012 [20] {255}
Square     RED        NOT_ALIVE_DISPOSED_INSTANCE_STATE
Done.
";

    #[test]
    fn samples_ends_and_listeners_are_distinguished() {
        let printed = Printed::of(TEXT);
        let samples = printed.samples();
        assert_eq!(samples.len(), 2);
        assert_eq!(
            (samples[0].x, samples[0].y, samples[0].payload),
            (15, 9, None)
        );
        assert_eq!(
            (samples[1].color.as_str(), samples[1].payload),
            ("RED", Some(255))
        );
        assert_eq!(
            (printed.ends("DISPOSED"), printed.ends("NO_WRITERS")),
            (1, 0)
        );
        assert_eq!(printed.reported("on_subscription_matched").len(), 1);
        let late = Printed::of(&format!("{TEXT}on_liveliness_lost() x\n"));
        assert_eq!(late.reported("on_liveliness_lost"), ["x"]);
        assert!(
            late.reported_before_the_last_sample("on_liveliness_lost")
                .is_empty()
        );
        let before = late.reported_before_the_last_sample("on_subscription_matched");
        assert_eq!(before.len(), 1);
        assert_eq!(printed.last(), Some("Done."));
    }
}
