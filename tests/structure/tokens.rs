//! Splits Rust source into tokens, in enough detail to find paths. Comments are dropped, and string
//! contents are kept apart from code.

/// One token, borrowed from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An identifier or keyword. The `r#` of a raw identifier is removed.
    Name(&'a str),
    /// The text between the quotes of a string.
    Text(&'a str),
    /// `::`
    PathSeparator,
    /// Any other character. Numbers, lifetimes and character literals are left out.
    Mark(char),
}

/// All tokens of a source.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (token, len) = next(rest, first);
        tokens.extend(token);
        rest = &rest[len..];
    }
    tokens
}

/// The token at the beginning, if there is one, and the length of what was read, in bytes.
fn next(rest: &str, first: char) -> (Option<Token<'_>>, usize) {
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment_len(rest));
    }
    if rest.starts_with("::") {
        return (Some(Token::PathSeparator), 2);
    }
    if let Some((text, len)) = string(rest) {
        return (Some(Token::Text(text)), len);
    }
    if first == '\'' {
        return (None, quote_len(rest));
    }
    let word = word_len(rest);
    if first.is_ascii_digit() {
        return (None, word);
    }
    // A raw identifier. Raw strings are handled above.
    if let Some(raw) = rest.strip_prefix("r#") {
        let len = word_len(raw);
        return (Some(Token::Name(&raw[..len])), 2 + len);
    }
    if word > 0 {
        return (Some(Token::Name(&rest[..word])), word);
    }
    let token = (!first.is_whitespace()).then_some(Token::Mark(first));
    (token, first.len_utf8())
}

/// The length in bytes of the letters, digits and underscores at the beginning.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length in bytes of a comment that begins with `/*`. Such comments nest.
fn block_comment_len(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The content of a string literal of any kind at the beginning, and the length in bytes of the
/// whole literal.
fn string(text: &str) -> Option<(&str, usize)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let rest = &text[prefix.len()..];
    let marks = rest.len() - rest.trim_start_matches('#').len();
    let is_raw = prefix.ends_with('r');
    if marks > 0 && !is_raw {
        return None;
    }
    let begin = prefix.len() + marks + 1;
    let end = if is_raw {
        text[begin..].find(&format!("\"{}", "#".repeat(marks)))
    } else {
        end_of_escaped(&text[begin..], b'"')
    };
    let end = begin + end.unwrap_or(text.len() - begin);
    Some((&text[begin..end], (end + 1 + marks).min(text.len())))
}

/// The position of the closing quote in a text with escapes.
fn end_of_escaped(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == quote && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// The length in bytes of a character literal, or of a lifetime, which begins like one.
fn quote_len(text: &str) -> usize {
    let rest = &text[1..];
    let mut chars = rest.chars();
    let first = chars.next();
    let is_character = first == Some('\\') || chars.next() == Some('\'');
    match first {
        Some(_) if is_character => {
            1 + end_of_escaped(rest, b'\'').map_or(rest.len(), |end| end + 1)
        }
        _ => 1 + word_len(rest),
    }
}

#[test]
fn comments_and_string_literals_contain_no_names() {
    use Token::{Mark, Name, PathSeparator, Text};
    for (source, expected) in [
        ("a::b", vec![Name("a"), PathSeparator, Name("b")]),
        ("a // crate::b\nc", vec![Name("a"), Name("c")]),
        ("/* crate::a /* b */ c */ d", vec![Name("d")]),
        (r#""crate::a \" b" c"#, vec![Text(r#"crate::a \" b"#), Name("c")]),
        ("r#\"a \" b\"# c", vec![Text("a \" b"), Name("c")]),
        (r#"b"a\\" c"#, vec![Text(r"a\\"), Name("c")]),
        ("r#type br\"x\"", vec![Name("type"), Text("x")]),
        (r"'a' '\'' '\\' '\u{1f}' b'\n' c", vec![Name("b"), Name("c")]),
        ("'\"' a", vec![Name("a")]),
        ("&'a str", vec![Mark('&'), Name("str")]),
        ("0x1f..1_000u8", vec![Mark('.'), Mark('.')]),
        ("größe 'ä'", vec![Name("größe")]),
    ] {
        assert_eq!(tokens(source), expected, "{source}");
    }
}
