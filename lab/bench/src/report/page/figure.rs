//! Figures of a comparison as SVG: the distribution of round-trip times, its tail, box plots, and times in the course of
//! the run.
//!
//! All have a logarithmic time axis, because a disturbed round trip may take a hundred times as long as an undisturbed
//! one. Shares refer to all scheduled round trips. In the tail, a lost round trip counts as longer than any time, so
//! the curve ends at the share lost. Otherwise a run would look better for losing its slowest samples.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::record::{Bin, Shape};

/// Size of the drawing in pixels; the page scales it. The size is small, so that labels are readable on a phone.
const SIZE: (u32, u32) = (480, 330);
/// Axis colours for the white page; the style sheet adapts them to dark mode.
const INK: RGBColor = RGBColor(70, 70, 70);
const GRID: RGBColor = RGBColor(222, 222, 222);
/// Length of a dash and of the gap after it, in pixels.
const DASH: u32 = 6;
const GAP: u32 = 3;
/// Maximum number of marks on a logarithmic axis of times: 1, 2, ... 9 of each decade.
const TIME_MARKS: usize = 60;
/// Maximum number of marks on the axis of shares.
const SHARE_MARKS: usize = 10;
/// Maximum number of marks on the axis of the run's time.
const RUN_MARKS: usize = 8;
/// Ratio of the longest to the shortest time from which on only 1 of each decade has a label.
const WIDE: f64 = 300.0;
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
    /// Box plot and time series.
    pub(super) shape: Option<Shape>,
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

/// Box plots, in the order of the curves from the top. `None` without round trips.
pub(super) fn boxes(curves: &[Curve]) -> Option<String> {
    let shapes: Vec<(&Curve, &Shape)> = curves
        .iter()
        .filter_map(|curve| Some((curve, curve.shape.as_ref()?)))
        .collect();
    let rows = 0.0..shapes.len() as f64;
    let times_us = times_us(curves)?;
    let marks = time_marks(&times_us);
    chart(
        times_us.log_scale(),
        rows,
        ("round trip", ""),
        [(TIME_MARKS, &marks), (0, &|_| String::new())],
        |chart| {
            for (row, (curve, shape)) in shapes.iter().enumerate() {
                let y = (shapes.len() - row) as f64 - 0.5;
                let [low, quarter, median, three_quarters, high] = shape.quantiles_us;
                let style = curve.style.colour.stroke_width(curve.style.width);
                let line = |x1, y1, x2, y2| PathElement::new([(x1, y1), (x2, y2)], style);
                let lines = [
                    line(low, y, quarter, y),
                    line(three_quarters, y, high, y),
                    line(low, y - 0.12, low, y + 0.12),
                    line(high, y - 0.12, high, y + 0.12),
                    line(median, y - 0.3, median, y + 0.3),
                ];
                chart.draw_series(lines).ok()?;
                let corners = [(quarter, y - 0.3), (three_quarters, y + 0.3)];
                let inside = curve.style.colour.mix(0.3).filled();
                let box_parts = [
                    Rectangle::new(corners, inside),
                    Rectangle::new(corners, style),
                ];
                chart.draw_series(box_parts).ok()?;
                let colour = curve.style.colour;
                let points = shape
                    .beyond_us
                    .iter()
                    .map(|&us| Circle::new((us, y), 2, colour));
                chart.draw_series(points).ok()?;
            }
            Some(())
        },
    )
}

/// Medians (lines) and maxima (points) in the course of the runs; bins in which the sender of a run was stalled are
/// shaded. `None` without round trips.
pub(super) fn courses(curves: &[Curve]) -> Option<String> {
    let times_us = times_us(curves)?;
    let bins = |curve: &Curve| -> Vec<(f64, Bin)> {
        let shape = curve.shape.iter();
        let bins = shape.flat_map(|shape| {
            let bins = shape.bins.iter().enumerate();
            bins.map(|(index, bin)| (index as f64 * shape.bin_s, *bin))
        });
        bins.collect()
    };
    let lengths = curves.iter().filter_map(|curve| curve.shape.as_ref());
    let lengths = lengths.map(|shape| shape.bins.len() as f64 * shape.bin_s);
    let end_s = lengths.reduce(f64::max)?;
    let (low_us, high_us) = (times_us.start, times_us.end);
    let second = |s: &f64| format!("{} s", round(*s));
    let marks = time_marks(&times_us);
    chart(
        0.0..end_s,
        times_us.log_scale(),
        ("time of the run", "round trip"),
        [(RUN_MARKS, &second), (TIME_MARKS, &marks)],
        |chart| {
            for curve in curves {
                let bin_s = curve.shape.as_ref().map_or(0.0, |shape| shape.bin_s);
                let stalls = bins(curve).into_iter().filter(|(_, bin)| bin.late > 0);
                let shade = curve.style.colour.mix(0.15).filled();
                let area = |at| Rectangle::new([(at, low_us), (at + bin_s, high_us)], shade);
                chart.draw_series(stalls.map(|(at, _)| area(at))).ok()?;
            }
            for curve in curves {
                let medians = bins(curve)
                    .into_iter()
                    .filter_map(|(at, bin)| Some((at, bin.median_us?)));
                let style = curve.style.colour.stroke_width(curve.style.width);
                chart.draw_series(LineSeries::new(medians, style)).ok()?;
                let maxima = bins(curve)
                    .into_iter()
                    .filter_map(|(at, bin)| Some((at, bin.max_us?)));
                let colour = curve.style.colour;
                chart
                    .draw_series(maxima.map(|point| Circle::new(point, 1, colour)))
                    .ok()?;
            }
            Some(())
        },
    )
}

fn times_us(curves: &[Curve]) -> Option<Range<f64>> {
    let buckets = || curves.iter().flat_map(|curve| &curve.buckets);
    let low_us = buckets().map(|bucket| bucket.low_us).reduce(f64::min)?;
    let high_us = buckets().map(|bucket| bucket.high_us).reduce(f64::max)?;
    Some(low_us.max(0.001)..high_us)
}

/// Draws the `points` of each curve over a logarithmic time axis. `names` are the names of the axes.
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
    let of_times = time_marks(&times_us);
    let marks: [Marks<'_>; 2] = [
        (TIME_MARKS, &of_times),
        (SHARE_MARKS, &|share| percent(*share)),
    ];
    chart(times_us.log_scale(), shares, names, marks, |chart| {
        for curve in curves {
            let style = curve.style.colour.stroke_width(curve.style.width);
            let points = points(curve, end_us);
            match curve.style.is_dashed {
                true => chart.draw_series(DashedLineSeries::new(points, DASH, GAP, style)),
                false => chart.draw_series(LineSeries::new(points, style)),
            }
            .ok()?;
        }
        Some(())
    })
}

/// Maximum number of an axis's marks, and their labels.
type Marks<'a> = (usize, &'a dyn Fn(&f64) -> String);

/// Draws a chart with named axes, as an SVG without XML prolog for inclusion in a page. Drawing into a string fails only
/// if the axes do not fit, and they fit [`SIZE`].
fn chart<X, Y>(
    x: X,
    y: Y,
    names: (&str, &str),
    [x_marks, y_marks]: [Marks<'_>; 2],
    draw: impl FnOnce(
        &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X::CoordDescType, Y::CoordDescType>>,
    ) -> Option<()>,
) -> Option<String>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .margin_right(20)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(x, y)
            .ok()?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(("sans-serif", 15, &INK))
            .x_desc(names.0)
            .y_desc(names.1)
            .x_labels(x_marks.0)
            .x_label_formatter(x_marks.1)
            .y_labels(y_marks.0)
            .y_label_formatter(y_marks.1)
            .draw()
            .ok()?;
        draw(&mut chart)?;
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

/// Labels of the marks on a logarithmic axis of times: only 1, 2 and 5 of each decade have one, or only 1 on a wide axis,
/// so that labels do not overlap.
fn time_marks(times_us: &Range<f64>) -> impl Fn(&f64) -> String + use<> {
    let labelled: &[f64] = match times_us.end / times_us.start > WIDE {
        true => &[1.0],
        false => &[1.0, 2.0, 5.0],
    };
    move |us| {
        let digit = us / 10_f64.powf(us.log10().floor());
        let is_labelled = labelled.iter().any(|known| (digit - known).abs() < 0.01);
        if is_labelled {
            time(*us)
        } else {
            String::new()
        }
    }
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
            shape: Some(Shape {
                quantiles_us: [100.0, 120.0, 150.0, 200.0, 700.0],
                beyond_us: vec![800.0],
                omitted: 0,
                bin_s: 0.5,
                bins: vec![
                    Bin {
                        median_us: Some(150.0),
                        max_us: Some(800.0),
                        late: 1,
                    },
                    Bin::default(),
                ],
            }),
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
    fn a_box_has_its_points_and_a_stall_is_shaded() {
        let curves = [curve()];
        let svg = boxes(&curves).expect("a picture");
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
        let svg = courses(&curves).expect("a picture");
        assert_eq!(
            svg.matches("<circle").count(),
            1,
            "one bin has times: {svg}"
        );
        assert_eq!(svg.matches("opacity=\"0.15\"").count(), 1, "{svg}");
    }

    #[test]
    fn without_samples_there_is_no_picture() {
        let nothing = Curve {
            name: "nothing".into(),
            style: style(false),
            buckets: vec![],
            samples: 10,
            shape: None,
        };
        let nothing = std::slice::from_ref(&nothing);
        for picture in [distributions, tails, boxes, courses] {
            assert_eq!(picture(nothing), None);
        }
    }

    #[test]
    fn labels_have_as_many_digits_as_they_need() {
        assert_eq!(time(250.0), "250 µs");
        assert_eq!(time(12_589.0), "12.6 ms");
        assert_eq!(time(2e6), "2 s");
        let mark = time_marks(&(100.0..1_000.0));
        assert_eq!(mark(&200.0), "200 µs");
        assert_eq!(mark(&300.0), "");
        assert_eq!(time_marks(&(10.0..10_000.0))(&200.0), "");
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
