//! Figures of a comparison as SVG: the distribution of round-trip times, and its tail.
//!
//! Both have a logarithmic time axis, because a disturbed round trip may take a hundred times as long as an undisturbed
//! one. Shares refer to all scheduled round trips. In the tail, a lost round trip counts as longer than any time, so
//! the curve ends at the share lost. Otherwise a run would look better for losing its slowest samples.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// Size of the drawing in pixels; the page scales it. The size is small, so that labels are readable on a phone.
const SIZE: (u32, u32) = (480, 330);
/// Axis colours for the white page; the style sheet adapts them to dark mode.
const INK: RGBColor = RGBColor(70, 70, 70);
const GRID: RGBColor = RGBColor(222, 222, 222);
/// Length of a dash and of the gap after it, in pixels.
const DASH: u32 = 6;
const GAP: u32 = 3;
/// Maximum number of marks on the time axis: 1, 2, ... 9 of each decade.
const TIME_MARKS: usize = 60;
/// Smallest share that a tail shows.
const MIN_SHARE: f64 = 1e-4;

/// Number of round trips within a time range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) low_us: f64,
    pub(super) high_us: f64,
    pub(super) count: u64,
}

/// Style of a curve, which has one meaning in all figures and bars of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CurveStyle {
    /// Mechanisms of the run.
    pub(super) colour: RGBColor,
    /// True for undisturbed runs.
    pub(super) is_dashed: bool,
    /// Thickness in pixels.
    pub(super) width: u32,
}

impl CurveStyle {
    /// Colour as in CSS.
    pub(super) fn css_colour(self) -> String {
        let RGBColor(red, green, blue) = self.colour;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// Name that distinguishes the curve within the figure.
    pub(super) name: String,
    pub(super) style: CurveStyle,
    /// Buckets by time, without overlap; empty ones may be omitted.
    pub(super) buckets: Vec<Bucket>,
    /// Number of scheduled round trips.
    pub(super) samples: u64,
}

impl Curve {
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.samples.max(1) as f64
    }

    /// Outline of the distribution: steps that start and end at zero.
    fn outline(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        let mut end_us = None;
        for bucket in &self.buckets {
            let share = self.share(bucket.count);
            if end_us != Some(bucket.low_us) {
                points.extend(end_us.map(|end_us| (end_us, 0.0)));
                points.push((bucket.low_us, 0.0));
            }
            points.extend([(bucket.low_us, share), (bucket.high_us, share)]);
            end_us = Some(bucket.high_us);
        }
        points.extend(end_us.map(|end_us| (end_us, 0.0)));
        points
    }

    /// Points (time, share that took longer or was lost) up to `end_us`.
    fn tail(&self, end_us: f64) -> Vec<(f64, f64)> {
        let mut longer = self.samples;
        let mut points: Vec<(f64, f64)> = Vec::new();
        let start_us = self.buckets.first().map(|bucket| bucket.low_us);
        points.extend(start_us.map(|start_us| (start_us, 1.0)));
        for bucket in &self.buckets {
            longer = longer.saturating_sub(bucket.count);
            points.push((bucket.high_us, self.share(longer)));
        }
        let lost = self.share(longer);
        points.push((end_us, lost));
        points.retain(|(_, share)| *share >= MIN_SHARE);
        points
    }
}

/// Figure of the distributions. `None` without round trips.
pub(super) fn distributions(curves: &[Curve]) -> Option<String> {
    let shares = curves.iter().flat_map(Curve::outline);
    let highest = shares.map(|(_, share)| share).fold(0.0, f64::max);
    let names = ("round trip", "share of round trips");
    draw(curves, names, 0.0..highest * 1.05, |curve, _| {
        curve.outline()
    })
}

/// Figure of the shares that took longer than a time. `None` without round trips.
pub(super) fn tails(curves: &[Curve]) -> Option<String> {
    let names = ("time", "share that took longer");
    draw(curves, names, (MIN_SHARE..1.0).log_scale(), Curve::tail)
}

fn times_us(curves: &[Curve]) -> Option<Range<f64>> {
    let buckets = || curves.iter().flat_map(|curve| &curve.buckets);
    let low_us = buckets().map(|bucket| bucket.low_us).reduce(f64::min)?;
    let high_us = buckets().map(|bucket| bucket.high_us).reduce(f64::max)?;
    Some(low_us.max(0.001)..high_us)
}

/// Draws the `points` of each curve over a logarithmic time axis, as an SVG without XML prolog for inclusion in a page.
/// `names` are the names of the axes. Drawing into a string fails only if the axes do not fit, and they fit [`SIZE`].
fn draw<Y>(
    curves: &[Curve],
    names: (&str, &str),
    shares: Y,
    points: impl Fn(&Curve, f64) -> Vec<(f64, f64)>,
) -> Option<String>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let times_us = times_us(curves)?;
    let end_us = times_us.end;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .margin_right(20)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(times_us.log_scale(), shares)
            .ok()?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(("sans-serif", 15, &INK))
            .x_desc(names.0)
            .y_desc(names.1)
            .x_labels(TIME_MARKS)
            .x_label_formatter(&|us| time_mark(*us))
            .y_label_formatter(&|share| percent(*share))
            .draw()
            .ok()?;
        for curve in curves {
            let style = curve.style.colour.stroke_width(curve.style.width);
            let points = points(curve, end_us);
            match curve.style.is_dashed {
                true => chart.draw_series(DashedLineSeries::new(points, DASH, GAP, style)),
                false => chart.draw_series(LineSeries::new(points, style)),
            }
            .ok()?;
        }
        drop(chart);
        area.present().ok()?;
    }
    Some(svg)
}

/// Formats a time with its unit, short enough for an axis.
pub(super) fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", round(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", round(us / 1e3)),
        us => format!("{} µs", round(us)),
    }
}

/// Label of a mark: only 1, 2 and 5 of each decade have one, so that labels do not overlap.
fn time_mark(us: f64) -> String {
    let digit = us / 10_f64.powf(us.log10().floor());
    let is_labelled = [1.0, 2.0, 5.0]
        .iter()
        .any(|labelled| (digit - labelled).abs() < 0.01);
    if is_labelled { time(us) } else { String::new() }
}

fn percent(share: f64) -> String {
    format!("{} %", round(share * 100.0))
}

/// Rounds to three digits, without trailing zeros.
fn round(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(low_us: f64, high_us: f64, count: u64) -> Bucket {
        Bucket {
            low_us,
            high_us,
            count,
        }
    }

    fn style(is_dashed: bool) -> CurveStyle {
        CurveStyle {
            colour: RGBColor(0, 114, u8::from(is_dashed)),
            is_dashed,
            width: 2,
        }
    }

    fn curve() -> Curve {
        Curve {
            name: "flood".into(),
            style: style(false),
            buckets: vec![bucket(100.0, 200.0, 80), bucket(400.0, 800.0, 10)],
            samples: 100,
        }
    }

    #[test]
    fn the_outline_returns_to_zero_where_no_bucket_is() {
        assert_eq!(
            curve().outline(),
            [
                (100.0, 0.0),
                (100.0, 0.8),
                (200.0, 0.8),
                (200.0, 0.0),
                (400.0, 0.0),
                (400.0, 0.1),
                (800.0, 0.1),
                (800.0, 0.0)
            ]
        );
    }

    #[test]
    fn what_is_lost_is_longer_than_any_time() {
        let points = curve().tail(1000.0);
        let expected = [(100.0, 1.0), (200.0, 0.2), (800.0, 0.1), (1000.0, 0.1)];
        assert_eq!(points, expected);
    }

    #[test]
    fn a_run_that_lost_nothing_ends_where_its_last_round_trip_does() {
        let mut all_back = curve();
        all_back.samples = 90;
        assert_eq!(all_back.tail(1000.0).last(), Some(&(200.0, 1.0 / 9.0)));
    }

    #[test]
    fn both_pictures_have_a_line_for_each_curve_and_times_with_units() {
        let mut curves = [curve(), curve()];
        curves[1].style = style(true);
        for svg in [distributions(&curves), tails(&curves)].map(Option::unwrap) {
            assert!(svg.starts_with("<svg"), "{svg}");
            for curve in &curves {
                let stroke = curve.style.css_colour().to_uppercase();
                assert!(svg.contains(&format!("stroke=\"{stroke}\"")), "{svg}");
            }
            assert!(svg.contains(" µs"), "{svg}");
        }
    }

    #[test]
    fn without_samples_there_is_no_picture() {
        let nothing = Curve {
            name: "nothing".into(),
            style: style(false),
            buckets: vec![],
            samples: 10,
        };
        assert_eq!(distributions(std::slice::from_ref(&nothing)), None);
        assert_eq!(tails(&[nothing]), None);
    }

    #[test]
    fn labels_have_as_many_digits_as_they_need() {
        assert_eq!(time(250.0), "250 µs");
        assert_eq!(time(12_589.0), "12.6 ms");
        assert_eq!(time(2e6), "2 s");
        assert_eq!(time_mark(200.0), "200 µs");
        assert_eq!(time_mark(300.0), "");
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
