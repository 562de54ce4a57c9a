use burn_zoo_core::{Error, Result};
use plotters::prelude::*;

/// A named curve.
pub(super) struct Series {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

impl Series {
    pub fn new(name: &'static str, points: Vec<(f64, f64)>) -> Self {
        let points = points.into_iter().filter(|p| p.1.is_finite()).collect();
        Self { name, points }
    }
}

const COLOURS: [RGBColor; 3] = [
    RGBColor(37, 99, 235),
    RGBColor(234, 88, 12),
    RGBColor(22, 163, 74),
];

/// Curves over steps as an SVG element.
pub(super) fn line_chart(title: &str, unit: &str, series: &[Series]) -> Result<String> {
    let mut svg = String::new();
    draw(&mut svg, title, unit, series).map_err(|e| {
        Error::usage(
            "report",
            format!("the chart `{title}` cannot be drawn: {e}"),
        )
    })?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    title: &str,
    unit: &str,
    series: &[Series],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let points = || series.iter().flat_map(|s| s.points.iter());
    let right = points().map(|p| p.0).fold(1.0, f64::max);
    let top = points().map(|p| p.1).fold(f64::MIN, f64::max);
    let bottom = points().map(|p| p.1).fold(f64::MAX, f64::min);
    let (bottom, top) = if bottom <= top {
        (bottom, top)
    } else {
        (0.0, 1.0)
    };
    let margin = ((top - bottom) * 0.05).max(top.abs() * 1e-3).max(1e-9);
    let floor = if bottom >= 0.0 {
        (bottom - margin).max(0.0)
    } else {
        bottom - margin
    };

    let area = SVGBackend::with_string(svg, (560, 300)).into_drawing_area();
    let font = ("sans-serif", 13);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..right, floor..top + margin)?;
    let format_y = |v: &f64| match v.abs() {
        0.0 => "0".to_string(),
        m if m < 1e-3 => format!("{v:.1e}"),
        m if m < 0.1 => format!("{v:.4}"),
        m if m < 10.0 => format!("{v:.3}"),
        _ => format!("{v:.1}"),
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(226, 232, 240))
        .axis_style(RGBColor(148, 163, 184))
        .x_desc("step")
        .y_desc(unit)
        .x_label_formatter(&|v| format!("{v:.0}"))
        .y_label_formatter(&format_y)
        .label_style(font)
        .draw()?;
    for (series, colour) in series.iter().zip(COLOURS) {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(series.points.iter().copied(), style))?
            .label(series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    if series.len() > 1 {
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(203, 213, 225))
            .label_font(font)
            .draw()?;
    }
    area.present()?;
    Ok(())
}
