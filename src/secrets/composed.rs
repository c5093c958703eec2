//! Tokens of several parts, of which each has a form of its own: Airtable's, Mailchimp's and Heroku's
//! older ones.

use memchr::memmem;

use super::shape::{bounded, entropy, is_hex, is_sample, is_uuid, is_word};
use super::{Rank, Sort, Span};

const AIRTABLE: Sort = Sort("Airtable token");
const MAILCHIMP: Sort = Sort("Mailchimp key");
const HEROKU: Sort = Sort("Heroku key");

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for (sign, of) in [
        (&b"pat"[..], of_airtable as fn(&[u8], usize) -> Option<(Sort, usize, usize)>),
        (b"-us", of_mailchimp),
        (b"HRKU-", of_heroku),
    ] {
        let found = memmem::find_iter(bytes, sign).filter_map(|at| of(bytes, at));
        let whole = found.filter(|(_, start, end)| {
            bounded(bytes, *start) && bytes.get(*end).is_none_or(|byte| !is_word(*byte))
        });
        spans.extend(whole.map(|(sort, start, end)| Span::new(start..end, sort, Rank::Form)));
    }
}

/// `pat`, 14 letters and digits, a point and 64 hexadecimal digits.
fn of_airtable(text: &[u8], at: usize) -> Option<(Sort, usize, usize)> {
    let (name, rest) = text[at..].get(3..)?.split_at_checked(14)?;
    let drawn = rest.strip_prefix(b".")?.get(..64)?;
    (name.iter().all(u8::is_ascii_alphanumeric) && is_drawn(drawn)).then_some((
        AIRTABLE,
        at,
        at + 3 + 14 + 1 + 64,
    ))
}

/// 32 hexadecimal digits, `-us` and the number of a data centre.
fn of_mailchimp(text: &[u8], at: usize) -> Option<(Sort, usize, usize)> {
    let start = at.checked_sub(32)?;
    let digits = text[at + 3..].iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    ((1..=2).contains(&digits) && is_drawn(&text[start..at])).then_some((
        MAILCHIMP,
        start,
        at + 3 + digits,
    ))
}

/// `HRKU-` and what names things elsewhere.
fn of_heroku(text: &[u8], at: usize) -> Option<(Sort, usize, usize)> {
    let body = text[at..].get(5..41)?;
    (is_uuid(body) && !is_sample(body)).then_some((HEROKU, at, at + 41))
}

fn is_drawn(digits: &[u8]) -> bool {
    is_hex(digits) && entropy(digits) >= 3.0 && !is_sample(digits)
}
