//! What was measured: a table for people, and one line of JSON.

use serde_json::{Map, Value};

/// Figures in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

struct Figure {
    name: String,
    value: f64,
    target: Option<&'static str>,
}

impl Report {
    /// Adds a figure, and what it should be.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        value: f64,
        target: Option<&'static str>,
    ) {
        self.figures.push(Figure { name: name.into(), value: rounded(value), target });
    }

    /// A line for each figure.
    pub(crate) fn table(&self) -> String {
        let line = |name: &str, value: &str, target: &str| {
            format!("{name:<24}{value:>12}  {target}").trim_end().to_owned()
        };
        let mut lines = vec![line("figure", "measured", "target")];
        lines.extend(self.figures.iter().map(|figure| {
            line(&figure.name, &figure.value.to_string(), figure.target.unwrap_or_default())
        }));
        lines.join("\n")
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let members = self.figures.iter().map(|figure| (figure.name.clone(), figure.value.into()));
        Value::Object(members.collect::<Map<_, _>>()).to_string()
    }
}

/// Three decimals, and none where there are thousands.
fn rounded(value: f64) -> f64 {
    if 1000.0 <= value { value.round() } else { (value * 1e3).round() / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_a_table_and_in_one_line_of_json() {
        let mut report = Report::default();
        report.add("deliveries_per_second", 2345.678, Some(">= 2000"));
        report.add("rss_idle_mib", 12.34567, None);
        assert_eq!(
            report.table(),
            "figure                      measured  target\n\
             deliveries_per_second           2346  >= 2000\n\
             rss_idle_mib                  12.346"
        );
        assert_eq!(report.json(), r#"{"deliveries_per_second":2346.0,"rss_idle_mib":12.346}"#);
    }
}
