//! `Report`: the reasons why a probe fails.

use std::fmt::Write;

/// The reasons why a probe fails; empty if all is well.
#[derive(Default)]
pub(super) struct Report {
    reasons: Vec<String>,
}

impl Report {
    pub(super) fn add(&mut self, reason: String) {
        self.reasons.push(reason);
    }

    pub(super) fn is_ok(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns `{"status":"ok"}`, or the reasons as JSON.
    pub(super) fn json(&self) -> String {
        if self.is_ok() {
            return "{\"status\":\"ok\"}\n".into();
        }
        let mut json = String::from("{\"status\":\"unavailable\",\"reasons\":[");
        for (number, reason) in self.reasons.iter().enumerate() {
            if number > 0 {
                json.push(',');
            }
            push_string(&mut json, reason);
        }
        json.push_str("]}\n");
        json
    }
}

/// Appends a JSON string (RFC 8259 §7).
fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => json.extend(['\\', char]),
            char if (char as u32) < 0x20 => {
                let _never_fails = write!(json, "\\u{:04x}", char as u32);
            }
            char => json.push(char),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_reasons_are_a_list_of_json_strings() {
        let mut report = Report::default();
        assert_eq!(report.json(), "{\"status\":\"ok\"}\n");
        report.add("a \"b\" \\ c\n".into());
        assert!(!report.is_ok());
        report.add("é".into());
        let reasons = r#"["a \"b\" \\ c\u000a","é"]"#;
        assert_eq!(
            report.json(),
            format!("{{\"status\":\"unavailable\",\"reasons\":{reasons}}}\n")
        );
    }
}
