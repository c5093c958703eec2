//! A reply's bytes: as text, and whether they are all of it.

use super::SIZE_LIMIT;
use crate::protocol::ParsedReply;

/// Why what holds NUL is no reply.
const NUL: &str = "it is not text: it holds NUL bytes; save the reply as UTF-8";

/// A reply's bytes as text: UTF-8, or UTF-16 with a byte order mark as some editors save it.
///
/// # Errors
/// Why it is no text, for the person.
pub fn decode(bytes: Vec<u8>) -> Result<String, String> {
    Read::of(bytes).reply().map(ParsedReply::into_text)
}

fn unicode(bytes: Vec<u8>) -> Result<String, String> {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map_err(|_| "it is not valid UTF-16 text".to_owned())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
            Err(_) => Err("it is not text: save the reply as UTF-8".to_owned()),
        },
    }
}

/// Why a reply of this size is not read.
pub fn too_large(size: u64) -> String {
    format!("it is {size} bytes long; a reply may have {SIZE_LIMIT}")
}

/// What the bytes of a reply come to.
pub(super) struct Read {
    /// Whether they end within a character.
    is_cut: bool,
    reply: Result<ParsedReply, String>,
}

impl Read {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let is_cut = match bytes.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => !bytes.len().is_multiple_of(2),
            bytes => std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none()),
        };
        Self { is_cut, reply: unicode(bytes).map(ParsedReply::new) }
    }

    /// Whether a reply ends within a block, a message or a character.
    pub(super) fn ends_early(&self) -> bool {
        self.is_cut || self.reply.as_ref().is_ok_and(ParsedReply::ends_early)
    }

    /// The reply, or why it is no text, for the person.
    pub(super) fn reply(self) -> Result<ParsedReply, String> {
        let reply = self.reply?;
        if reply.text().contains('\0') { Err(NUL.to_owned()) } else { Ok(reply) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_early(bytes: &[u8]) -> bool {
        Read::of(bytes.to_vec()).ends_early()
    }

    #[test]
    fn what_is_cut_off_ends_early_in_either_dialect() {
        const MESSAGE: &str =
            r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "lé"}]}"#;
        const TAGS: &str = "[CREATE_FILE path=\"a\"]\n{\"operations\": [\n[/CREATE_FILE]\n";
        for whole in [MESSAGE, TAGS, "```json\n{\"a\": 1}\n```", "Prose {", ""] {
            assert!(!ends_early(whole.as_bytes()), "{whole}");
        }
        for n in 1..MESSAGE.len() {
            assert!(ends_early(&MESSAGE.as_bytes()[..n]), "{n}");
            let fenced = [b"Look:\n```json\n", &MESSAGE.as_bytes()[..n]].concat();
            assert!(ends_early(&fenced), "{n}");
            let after = [TAGS.as_bytes(), &MESSAGE.as_bytes()[..n]].concat();
            // Then only what shows the key: most prose behind blocks is no message.
            let shows = n >= MESSAGE.find("operations").unwrap() + "operations".len();
            assert_eq!(ends_early(&after), shows, "{n}");
        }
        let wide: Vec<u8> = MESSAGE.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = [&[0xff, 0xfe][..], &wide].concat();
        assert!(!ends_early(&wide) && ends_early(&wide[..wide.len() - 2]));
    }

    #[test]
    fn text_is_decoded_whatever_an_editor_made_of_it() {
        let wide = |mark: [u8; 2], unit: fn(u16) -> [u8; 2]| {
            let units = "[DONE] ä\n".encode_utf16().flat_map(unit);
            decode(mark.into_iter().chain(units).collect())
        };
        assert_eq!(wide([0xff, 0xfe], u16::to_le_bytes).unwrap(), "[DONE] ä\n");
        assert_eq!(wide([0xfe, 0xff], u16::to_be_bytes).unwrap(), "[DONE] ä\n");
        assert_eq!(decode(b"\xef\xbb\xbf[DONE]".to_vec()).unwrap(), "[DONE]");
        assert!(decode(b"\xff\xd8\xff".to_vec()).unwrap_err().contains("UTF-8"));
        assert!(decode(b"a\0b".to_vec()).unwrap_err().contains("NUL"));
    }
}
