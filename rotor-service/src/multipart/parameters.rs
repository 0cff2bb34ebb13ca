//! `Parameters`: a value with parameters, as in `Content-Type` and `Content-Disposition`.

/// How many parameters a value may have; browsers send two. Each is compared with all before it.
const PARAMETERS_MAX: usize = 16;

/// A value, and the names and values after its semicolons.
pub(super) struct Parameters<'a> {
    pub(super) kind: &'a [u8],
    pairs: Vec<(&'a [u8], Vec<u8>)>,
}

impl<'a> Parameters<'a> {
    /// Reads a value; `None` if it is malformed, or has too many parameters or two of one name.
    pub(super) fn parse(value: &'a [u8]) -> Option<Parameters<'a>> {
        let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
        let (kind, mut rest) = (value[..end].trim_ascii(), &value[end..]);
        let mut pairs: Vec<(&[u8], Vec<u8>)> = Vec::new();
        while let [b';', more @ ..] = rest {
            let more = more.trim_ascii_start();
            // RFC 9110 §5.6.6 allows empty parameters.
            if more.is_empty() || more[0] == b';' {
                rest = more;
                continue;
            }
            let equals = more.iter().position(|&byte| byte == b'=')?;
            let (name, (value, after)) = (&more[..equals], parse_value(&more[equals + 1..])?);
            let is_twice = pairs.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
            if !is_token(name) || is_twice || pairs.len() == PARAMETERS_MAX {
                return None;
            }
            pairs.push((name, value));
            rest = after.trim_ascii_start();
        }
        rest.is_empty().then_some(Parameters { kind, pairs })
    }

    pub(super) fn take(mut self, name: &[u8]) -> Option<Vec<u8>> {
        self.remove(name)
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let at = self.pairs.iter().position(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(self.pairs.swap_remove(at).1)
    }
}

/// Reads a value, quoted or not, and returns it with what follows it.
fn parse_value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let [b'"', quoted @ ..] = text else {
        let end = text.iter().position(|&byte| byte == b';').unwrap_or(text.len());
        let value = text[..end].trim_ascii_end();
        return (!value.is_empty()).then(|| (value.to_vec(), &text[end..]));
    };
    let (mut value, mut rest) = (Vec::new(), quoted);
    loop {
        match rest {
            [] => return None,
            [b'"', after @ ..] => return Some((value, after)),
            // Some clients escape these two; others send the backslashes of a path like `C:\..`
            // unescaped.
            [b'\\', byte @ (b'"' | b'\\'), after @ ..] => {
                value.push(*byte);
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
        }
    }
}

/// RFC 9110 §5.6.2.
pub(super) fn is_token(text: &[u8]) -> bool {
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_one)
}
