//! `Json`: a writer of JSON (RFC 8259) that places the commas.

use std::fmt::Write;

/// A JSON text that is being written.
#[derive(Default)]
pub(crate) struct Json {
    text: String,
    needs_comma: bool,
}

impl Json {
    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Json)) {
        self.nest('{', '}', fill);
    }

    pub(crate) fn array(&mut self, fill: impl FnOnce(&mut Json)) {
        self.nest('[', ']', fill);
    }

    /// Writes the name of a member; its value has to be written next.
    pub(crate) fn key(&mut self, name: &str) -> &mut Json {
        self.string(name);
        self.text.push(':');
        self.needs_comma = false;
        self
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.write_comma_if_needed();
        self.text.push('"');
        for char in text.chars() {
            match char {
                '"' | '\\' => self.text.extend(['\\', char]),
                // Control characters, and characters that could end a script that contains the
                // text.
                '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\x7f' => {
                    let _ = write!(self.text, "\\u{:04x}", char as u32);
                }
                _ => self.text.push(char),
            }
        }
        self.text.push('"');
    }

    pub(crate) fn number(&mut self, number: impl Into<f64>) {
        let number = number.into();
        self.write_comma_if_needed();
        // JSON cannot express numbers that are not finite.
        let _ = if number.is_finite() {
            write!(self.text, "{number}")
        } else {
            write!(self.text, "null")
        };
    }

    pub(crate) fn count(&mut self, count: u64) {
        self.write_comma_if_needed();
        let _ = write!(self.text, "{count}");
    }

    pub(crate) fn bool(&mut self, yes: bool) {
        self.write_comma_if_needed();
        self.text.push_str(if yes { "true" } else { "false" });
    }

    pub(crate) fn null(&mut self) {
        self.write_comma_if_needed();
        self.text.push_str("null");
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn nest(&mut self, open: char, close: char, fill: impl FnOnce(&mut Json)) {
        self.write_comma_if_needed();
        self.text.push(open);
        self.needs_comma = false;
        fill(self);
        self.text.push(close);
        self.needs_comma = true;
    }

    fn write_comma_if_needed(&mut self) {
        if self.needs_comma {
            self.text.push(',');
        }
        self.needs_comma = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_values_and_dangerous_characters_are_escaped() {
        let mut json = Json::default();
        json.object(|json| {
            json.key("a").array(|json| {
                json.count(1);
                json.object(|_| {});
                json.null();
            });
            json.key("b\"").string("</script>\n\\");
            json.key("c").number(f64::NAN);
            json.key("d").bool(true);
        });
        let wanted = r#"{"a":[1,{},null],"b\"":"\u003c/script\u003e\u000a\\","c":null,"d":true}"#;
        assert_eq!(json.into_text(), wanted);
    }
}
