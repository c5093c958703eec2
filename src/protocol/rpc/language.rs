//! Which program runs code of which language (bouvet-jsonrpc, "Language Mapping").

/// A program that is given code as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interpreter {
    /// Its name, to be looked up on `PATH`.
    pub program: &'static str,
    /// What stands before the code.
    pub flag: &'static str,
}

/// The interpreter of a language, in any case; None for a language that is not supported.
pub fn interpreter(language: &str) -> Option<Interpreter> {
    let (program, flag) = match language.to_ascii_lowercase().as_str() {
        "python" | "python3" => ("python3", "-c"),
        "node" | "javascript" | "js" => ("node", "-e"),
        "bash" => ("bash", "-c"),
        "sh" => ("sh", "-c"),
        _ => return None,
    };
    Some(Interpreter { program, flag })
}
