//! What a program printed, read again.

/// A sample's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) topic: String,
    pub(crate) color: String,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) size: i32,
    /// The last byte of the payload, if there is one.
    pub(crate) payload: Option<u8>,
}

/// All a program printed.
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

    /// Lines of a listener: behind its name.
    pub(crate) fn told(&self, listener: &str) -> Vec<&str> {
        let lines = self.lines.iter();
        lines
            .filter_map(|line| line.strip_prefix(listener)?.strip_prefix("() "))
            .collect()
    }

    /// The same, before its last sample: of what a publisher was told while it wrote.
    pub(crate) fn told_before_the_last_sample(&self, listener: &str) -> Vec<&str> {
        let last = self.lines.iter().rposition(|line| sample(line).is_some());
        let before = Self {
            lines: self.lines[..last.unwrap_or(self.lines.len())].to_vec(),
        };
        let count = before.told(listener).len();
        self.told(listener).into_iter().take(count).collect()
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.lines.iter().filter_map(|line| sample(line)).collect()
    }

    /// The samples between lines that begin so.
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

    /// Lines that end instances, by their word.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Create topic: Square
Create reader for topic: Square
on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1 (change = 1)
Square     RED        015 009 [20]
Square     RED        020 012 [20] {255}
Square     RED        NOT_ALIVE_DISPOSED_INSTANCE_STATE
Done.
";

    #[test]
    fn samples_ends_and_listeners_are_told_apart() {
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
        assert_eq!(printed.told("on_subscription_matched").len(), 1);
        let late = Printed::of(&format!("{TEXT}on_liveliness_lost() x\n"));
        assert_eq!(late.told("on_liveliness_lost"), ["x"]);
        assert!(
            late.told_before_the_last_sample("on_liveliness_lost")
                .is_empty()
        );
        let before = late.told_before_the_last_sample("on_subscription_matched");
        assert_eq!(before.len(), 1);
        assert_eq!(printed.last(), Some("Done."));
    }
}
