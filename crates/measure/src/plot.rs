//! Plots as SVG: surfaces over data and hole size, and lines over hole size.
//!
//! # Source
//! Zickler 2015, §5.3 ("The 3D graphs are plotted from discrete points marked on the axis. Points in
//! between are interpolated to create a smooth surface") and Figures 5.2 to 5.24.

use plotters::coord::ranged3d::ProjectionMatrixBuilder;
use plotters::prelude::*;

use crate::error::{Error, Result};

/// Width and height of a surface, in pixels.
const SURFACE_SIZE: (u32, u32) = (560, 430);

/// Width and height of a plot of lines, in pixels.
const LINES_SIZE: (u32, u32) = (560, 340);

/// How many patches lie between two measured points.
const PATCHES: usize = 2;

const FONT: &str = "sans-serif";

/// Values over two axes of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    /// What is shown.
    pub title: String,
    /// The measured data sizes, as text.
    pub data: Vec<String>,
    /// The measured hole sizes, as text.
    pub holes: Vec<String>,
    /// For each data size the values at all hole sizes; none where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
    /// What the values are.
    pub scale: Scale,
}

/// What the height of a surface means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Megabytes of data per second, drawn logarithmically.
    Rate,
    /// How many times as fast as something else, drawn logarithmically around 1.
    Factor,
}

/// One line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// At the number of the hole size: value, smallest and largest.
    pub points: Vec<(usize, f64, f64, f64)>,
    /// Drawn in dots: what was expected, not measured.
    pub is_expected: bool,
}

impl Scale {
    fn height(self, value: f64) -> f64 {
        match self {
            Scale::Rate => value.log10(),
            Scale::Factor => value.log2(),
        }
    }

    fn text(self, height: f64) -> String {
        match self {
            Scale::Rate => rate_text(10_f64.powf(height)),
            Scale::Factor => format!("{} ×", short(2_f64.powf(height))),
        }
    }

    /// The highest and lowest height of a plot, on whole steps.
    fn range(self, heights: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let low = heights.clone().fold(f64::INFINITY, f64::min);
        let high = heights.fold(f64::NEG_INFINITY, f64::max);
        match self {
            Scale::Rate => (low.floor(), high.ceil().max(low.floor() + 1.0)),
            Scale::Factor => {
                let most = low.abs().max(high.abs()).ceil().max(1.0);
                (-most, most)
            }
        }
    }

    fn colour(self, height: f64, (low, high): (f64, f64)) -> RGBColor {
        let share = ((height - low) / (high - low)).clamp(0.0, 1.0);
        match self {
            Scale::Rate => between(&VIRIDIS, share),
            Scale::Factor => between(&RED_TO_BLUE, share),
        }
    }
}

/// Colours that can be told apart by people who do not see all of them: matplotlib's `viridis`.
const VIRIDIS: [(u8, u8, u8); 6] =
    [(68, 1, 84), (65, 68, 135), (42, 120, 142), (34, 168, 132), (122, 209, 81), (253, 231, 37)];

/// Slower in red, faster in blue.
const RED_TO_BLUE: [(u8, u8, u8); 5] =
    [(178, 24, 43), (244, 165, 130), (245, 245, 245), (146, 197, 222), (33, 102, 172)];

fn between(colours: &[(u8, u8, u8)], share: f64) -> RGBColor {
    let at = share * (colours.len() - 1) as f64;
    let index = (at as usize).min(colours.len() - 2);
    let rest = at - index as f64;
    let (from, to) = (colours[index], colours[index + 1]);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * rest).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// The colour of a lane, the same in all plots.
fn lane_colour(name: &str) -> RGBColor {
    match name {
        "adaptive" => RGBColor(37, 99, 235),
        "naive" => RGBColor(107, 114, 128),
        "romio" => RGBColor(217, 119, 6),
        "simple_pm" => RGBColor(5, 150, 105),
        "extent" => RGBColor(147, 51, 234),
        "scanfile" => RGBColor(146, 64, 14),
        other => {
            let sum: usize = other.bytes().map(usize::from).sum();
            [
                RGBColor(220, 38, 38),
                RGBColor(219, 39, 119),
                RGBColor(15, 118, 110),
                RGBColor(0, 0, 0),
            ][sum % 4]
        }
    }
}

/// Up to three digits.
fn short(value: f64) -> String {
    let digits = if value >= 10.0 || value.fract() == 0.0 {
        0
    } else if value >= 1.0 {
        1
    } else {
        3
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// `12 MB/s`, from megabytes per second.
#[must_use]
pub fn rate_text(rate: f64) -> String {
    if rate >= 1000.0 {
        format!("{} GB/s", short(rate / 1000.0))
    } else if rate >= 1.0 {
        format!("{} MB/s", short(rate))
    } else {
        format!("{} kB/s", short(rate * 1000.0))
    }
}

/// `8`, `4Ki`, `1M`: as short as it can be said exactly.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    for (unit, size) in [("Mi", 1 << 20), ("M", 1_000_000), ("Ki", 1 << 10), ("k", 1000)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    bytes.to_string()
}

fn drawn<E: std::error::Error + Send + Sync>(
    title: &str,
    result: std::result::Result<(), DrawingAreaErrorKind<E>>,
) -> Result<()> {
    result.map_err(|error| Error::Plot { title: title.to_owned(), why: error.to_string() })
}

/// Draws a surface. The measured points are marked; what lies between is interpolated.
///
/// # Errors
/// [`Error::Plot`], also when fewer than two sizes were measured on an axis.
pub fn surface(surface: &Surface) -> Result<String> {
    let Surface { title, data, holes, values, scale } = surface;
    let known = values.iter().flatten().flatten().map(|value| scale.height(*value));
    let known: Vec<f64> = known.filter(|height| height.is_finite()).collect();
    if data.len() < 2 || holes.len() < 2 || known.is_empty() {
        return Err(Error::Plot {
            title: title.clone(),
            why: "too few points for a surface".into(),
        });
    }
    let range = scale.range(known.iter().copied());
    let grid = Grid::new(values, *scale, range.0);
    let mut svg = String::new();
    let result = (|| {
        let root = SVGBackend::with_string(&mut svg, SURFACE_SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (x_end, z_end) = (holes.len() as f64 - 1.0, data.len() as f64 - 1.0);
        let mut chart = ChartBuilder::on(&root)
            .caption(title, (FONT, 15))
            .margin(6)
            // Axes go on a little: in the near corner their last names would stand on each other.
            .build_cartesian_3d(0.0..x_end + 0.5, range.0..range.1, 0.0..z_end + 0.5)?;
        chart.with_projection(|mut view: ProjectionMatrixBuilder| {
            view.pitch = 0.42;
            view.yaw = 0.68;
            view.scale = 0.78;
            view.into_matrix()
        });
        let label = |names: &[String], at: f64| {
            let index = at.round();
            let is_point = (at - index).abs() < 0.01 && index >= 0.0;
            let name = names.get(index.max(0.0) as usize).filter(|_| is_point);
            name.cloned().unwrap_or_default()
        };
        chart
            .configure_axes()
            .light_grid_style(BLACK.mix(0.08))
            .max_light_lines(1)
            .x_labels(holes.len())
            .z_labels(data.len())
            .y_labels(6)
            .label_style((FONT, 11))
            .x_formatter(&|at| label(holes, *at))
            .z_formatter(&|at| label(data, *at))
            .y_formatter(&|at| scale.text(*at))
            .draw()?;
        let steps = |end: f64| {
            let count = end as usize * PATCHES;
            // From the far corner to the near one, so that what is near is drawn over what is far.
            (0..=count).map(move |step| step as f64 / PATCHES as f64)
        };
        chart.draw_series(
            SurfaceSeries::xoz(steps(x_end), steps(z_end), |x, z| grid.at(x, z)).style_func(
                &|height: &f64| ShapeStyle {
                    color: scale.colour(*height, range).mix(0.92),
                    filled: true,
                    stroke_width: 1,
                },
            ),
        )?;
        let points =
            (0..data.len()).flat_map(|row| (0..holes.len()).map(move |column| (row, column)));
        chart.draw_series(points.filter(|(row, column)| values[*row][*column].is_some()).map(
            |(row, column)| {
                let (x, z) = (column as f64, row as f64);
                Circle::new((x, grid.at(x, z), z), 1, BLACK.mix(0.6).filled())
            },
        ))?;
        let text =
            |words: &str, at: (i32, i32)| Text::new(words.to_owned(), at, (FONT, 12).into_font());
        let (width, height) = (SURFACE_SIZE.0 as i32, SURFACE_SIZE.1 as i32);
        root.draw(&text("hole", (width * 30 / 100, height - 22)))?;
        root.draw(&text("data", (width * 82 / 100, height - 60)))?;
        root.present()
    })();
    drawn(title, result)?;
    Ok(svg)
}

/// Heights at the measured points, and between.
struct Grid {
    heights: Vec<Vec<f64>>,
}

impl Grid {
    fn new(values: &[Vec<Option<f64>>], scale: Scale, lowest: f64) -> Self {
        let height = |value: &Option<f64>| {
            let height = value.map_or(lowest, |value| scale.height(value));
            if height.is_finite() { height } else { lowest }
        };
        Self { heights: values.iter().map(|row| row.iter().map(height).collect()).collect() }
    }

    /// Bilinear, at hole number `x` and data number `z`.
    fn at(&self, x: f64, z: f64) -> f64 {
        let (rows, columns) = (self.heights.len(), self.heights[0].len());
        let (row, column) = ((z as usize).min(rows - 1), (x as usize).min(columns - 1));
        let (below, beside) = ((row + 1).min(rows - 1), (column + 1).min(columns - 1));
        let (down, right) = (z - row as f64, x - column as f64);
        let along = |row: usize| {
            self.heights[row][column] * (1.0 - right) + self.heights[row][beside] * right
        };
        along(row) * (1.0 - down) + along(below) * down
    }
}

/// Draws lines of megabytes per second over hole sizes, with bars from the smallest to the largest
/// value.
///
/// # Errors
/// [`Error::Plot`].
pub fn lines(title: &str, holes: &[String], lines: &[Line]) -> Result<String> {
    let all = lines.iter().flat_map(|line| &line.points);
    let all = all.flat_map(|(_, value, min, max)| [*value, *min, *max]);
    let all: Vec<f64> = all.filter(|value| value.is_finite() && *value > 0.0).collect();
    if all.is_empty() {
        return Err(Error::Plot { title: title.to_owned(), why: "there are no points".into() });
    }
    let low = all.iter().copied().fold(f64::INFINITY, f64::min) * 0.8;
    let high = all.iter().copied().fold(0.0, f64::max) * 1.25;
    let mut svg = String::new();
    let result = (|| {
        let root = SVGBackend::with_string(&mut svg, LINES_SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let x_end = (holes.len() as f64 - 1.0).max(1.0);
        let mut chart = ChartBuilder::on(&root)
            .caption(title, (FONT, 15))
            .margin(6)
            .margin_right(20)
            .x_label_area_size(34)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.2..x_end + 0.2, (low..high).log_scale())?;
        chart
            .configure_mesh()
            .bold_line_style(BLACK.mix(0.12))
            .light_line_style(BLACK.mix(0.04))
            .x_desc("hole")
            .x_labels(holes.len())
            .x_label_formatter(&|at| {
                let index = at.round();
                let name = holes.get(index.max(0.0) as usize);
                name.filter(|_| (at - index).abs() < 0.01).cloned().unwrap_or_default()
            })
            .y_label_formatter(&|rate| rate_text(*rate))
            .draw()?;
        for line in lines {
            let colour = lane_colour(&line.name);
            let width = if line.name == "adaptive" { 3 } else { 2 };
            let path = || line.points.iter().map(|(at, value, ..)| (*at as f64, *value));
            let name = if line.is_expected {
                format!("{} expected", line.name)
            } else {
                line.name.clone()
            };
            let style = colour.stroke_width(width);
            if line.is_expected {
                chart
                    .draw_series(DashedLineSeries::new(path(), 3, 4, colour.stroke_width(1)))?
                    .label(name)
                    .legend(move |(x, y)| {
                        let dash = |from, to| {
                            PathElement::new([(x + from, y), (x + to, y)], colour.stroke_width(1))
                        };
                        EmptyElement::at((0, 0)) + dash(0, 6) + dash(10, 16)
                    });
                continue;
            }
            chart
                .draw_series(LineSeries::new(path(), style))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
            chart.draw_series(line.points.iter().filter(|(_, _, min, max)| min < max).map(
                |(at, value, min, max)| {
                    ErrorBar::new_vertical(*at as f64, *min, *value, *max, colour.filled(), 5)
                },
            ))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.75))
            .label_font((FONT, 11))
            .draw()?;
        root.present()
    })();
    drawn(title, result)?;
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| size_text(1 << (3 + number))).collect()
    }

    fn a_surface(scale: Scale) -> Surface {
        let values =
            (0..4).map(|row| (0..5).map(|column| Some(1.0 + (row * column) as f64)).collect());
        let values = values.collect();
        Surface {
            title: "a <surface> & more".into(),
            data: names(4),
            holes: names(5),
            values,
            scale,
        }
    }

    #[test]
    fn surfaces_have_a_patch_for_each_part_of_each_cell() {
        for scale in [Scale::Rate, Scale::Factor] {
            let svg = surface(&a_surface(scale)).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.matches("<polygon").count() >= 3 * 4 * PATCHES * PATCHES);
            assert_eq!(svg.matches("<circle").count(), 20);
            assert!(svg.contains("a &lt;surface&gt; &amp; more"));
        }
    }

    #[test]
    fn what_was_not_measured_has_no_point() {
        let mut some = a_surface(Scale::Rate);
        some.values[1][2] = None;
        assert_eq!(surface(&some).unwrap().matches("<circle").count(), 19);
        some.values = vec![vec![None; 5]; 4];
        assert!(matches!(surface(&some), Err(Error::Plot { .. })));
    }

    #[test]
    fn lines_are_named_and_expected_ones_are_dashed() {
        let points: Vec<_> = (0..5).map(|at| (at, 10.0 * at as f64 + 1.0, 5.0, 90.0)).collect();
        let line = |name: &str, is_expected| Line {
            name: name.into(),
            points: points.clone(),
            is_expected,
        };
        let svg =
            lines("8 bytes", &names(5), &[line("adaptive", false), line("naive", true)]).unwrap();
        assert!(svg.contains("adaptive") && svg.contains("naive expected"));
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(lines("none", &names(5), &[]).is_err());
    }

    #[test]
    fn sizes_and_rates_are_short() {
        let shown = [8, 1000, 4096, 32_768, 100_000, 1_000_000, 2_097_152].map(size_text);
        assert_eq!(shown, ["8", "1k", "4Ki", "32Ki", "100k", "1M", "2Mi"]);
        assert_eq!(rate_text(0.02), "20 kB/s");
        assert_eq!(rate_text(12_345.0), "12 GB/s");
        assert_eq!(rate_text(1500.0), "1.5 GB/s");
        assert_eq!(Scale::Factor.text(-1.0), "0.5 ×");
    }
}
