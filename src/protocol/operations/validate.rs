//! Validates messages against their JSON Schemas ("JSON Schema") and against rules that a schema cannot express
//! ("Validation Rules"). Each fault contains its JSON path and the correct form.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use boon::{Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EVENTS_SCHEMA, Encoding, OPERATIONS_SCHEMA};
use crate::protocol::mistake::shortened;
use crate::text::{count, nearest};

/// The maximum length of a path, in UTF-16 units.
const PATH_LIMIT: usize = 255;
/// The maximum size of a new file in bytes, after decoding.
pub const CONTENT_LIMIT: usize = 10 << 20;
/// The most edits or environment variables. Each may have a fault, and faults take memory.
const ELEMENTS_LIMIT: usize = 100_000;
/// The most faults of one message that are kept. Further faults are counted.
const FAULT_LIMIT: usize = 100;
/// The most characters that are quoted of a value.
const QUOTE_LIMIT: usize = 60;
/// Words longer than this are not compared with the names of operations.
const NAME_LIMIT: usize = 40;
const MISSING: &str = "it is missing";

/// The texts used in messages.
#[derive(Deserialize)]
struct Words {
    /// The correct forms of definitions and fields, in the order in which faults are reported.
    forms: Vec<(String, String)>,
    /// Plain words for the error messages of `serde_json`, by a part of the message.
    json_problems: Vec<(String, String)>,
}

static WORDS: LazyLock<Words> =
    LazyLock::new(|| toml::from_str(include_str!("data/words.toml")).expect("a constant table"));

/// One thing that is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaFault {
    /// The place as a JSON path, such as `$.operations[2].timeout`. `$` is the message itself.
    pub path: String,
    /// The problem, without a full stop.
    pub problem: String,
    /// The correct form.
    pub form: String,
}

impl fmt::Display for SchemaFault {
    /// Writes one line, even if the sent values contain line breaks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. Correct form: {}", self.path, self.problem, self.form)
    }
}

/// The faults of a message, in order; never empty if used as an error. Each is printed on its own line. At most 100
/// faults are kept, and the others are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaFaults {
    kept: Vec<SchemaFault>,
    more: usize,
}

impl SchemaFaults {
    /// Returns the faults that were kept, in order.
    pub fn iter(&self) -> impl Iterator<Item = &SchemaFault> {
        self.kept.iter()
    }

    /// Returns the number of faults, including those that were not kept.
    pub fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    pub(super) fn add(&mut self, path: &str, problem: impl Into<String>, form: impl Into<String>) {
        if self.kept.len() < FAULT_LIMIT {
            let (path, problem, form) = (path.to_owned(), problem.into(), form.into());
            self.kept.push(SchemaFault { path, problem, form });
        } else {
            self.more += 1;
        }
    }

    /// Returns the value of a part, or adds the part's faults.
    pub(super) fn keep<T>(&mut self, part: Result<T, Self>) -> Option<T> {
        part.map_err(|part| {
            let room = FAULT_LIMIT - self.kept.len();
            self.more += part.more + part.kept.len().saturating_sub(room);
            self.kept.extend(part.kept.into_iter().take(room));
        })
        .ok()
    }

    /// A single fault.
    pub(crate) fn one(path: &str, problem: impl Into<String>, form: impl Into<String>) -> Self {
        let mut faults = Self::default();
        faults.add(path, problem, form);
        faults
    }

    /// Returns `value` if there are no faults.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.kept.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for SchemaFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.kept.iter().enumerate() {
            write!(f, "{}{fault}", if n > 0 { "\n" } else { "" })?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {}", count(more, "more fault")),
        }
    }
}

impl std::error::Error for SchemaFaults {}

/// The problem of a path according to agent-spaces-protocol, "Path Validation", which also refuses `a..b`. The empty
/// path and `C:\x` are accepted here, and refused later by [`RelPath`](crate::protocol::RelPath).
pub(super) fn path_problem(path: &str) -> Option<&'static str> {
    let problems = [
        (path.starts_with('/'), "the path is absolute"),
        (path.contains(".."), "the path contains `..`"),
        (path.contains('\0'), "the path contains a null character"),
        (excess(path, PATH_LIMIT).is_some(), "the path is longer than 255 characters"),
    ];
    problems.into_iter().find_map(|(applies, problem)| applies.then_some(problem))
}

/// By how many UTF-16 units (the unit of JavaScript) a text is longer than `limit`.
fn excess(text: &str, limit: usize) -> Option<usize> {
    // A text never has more UTF-16 units than bytes.
    let units = if text.len() <= limit { 0 } else { text.encode_utf16().count() };
    units.checked_sub(limit).filter(|excess| *excess > 0)
}

/// The definitions of all schemas, by name. Definitions of whole messages have the names of their types.
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let mut rules = Rules { schemas: Schemas::new(), definitions: BTreeMap::new() };
    for (message, text) in [
        ("OperationsMessage", OPERATIONS_SCHEMA),
        ("EventsMessage", EVENTS_SCHEMA),
        ("ApprovalMessage", include_str!("schema/approval.json")),
    ] {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        let url = format!("http://deaddrop.invalid/{message}");
        let mut compiler = Compiler::new();
        compiler.add_resource(&url, schema.clone()).expect("a valid URL");
        let mut compile = |name: &str, pointer: String, schema: &Value| {
            let index = compiler.compile(&pointer, &mut rules.schemas).expect("a valid schema");
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            rules.definitions.insert(name.to_owned(), Definition { index, fields });
        };
        compile(message, url.clone(), &schema);
        for (name, definition) in schema["definitions"].as_object().into_iter().flatten() {
            compile(name, format!("{url}#/definitions/{name}"), definition);
        }
    }
    rules
});

struct Rules {
    schemas: Schemas,
    definitions: BTreeMap<String, Definition>,
}

struct Definition {
    index: SchemaIndex,
    /// The schema of each field.
    fields: Map<String, Value>,
}

/// Adds all faults of an `Operation` or an `Event`. The value's type selects the definition that it is validated
/// against, so that faults describe what was intended. Fields that the definition does not have are removed.
pub(super) fn check_union(union: &str, value: &mut Value, path: &str, faults: &mut SchemaFaults) {
    let Value::Object(fields) = &*value else {
        let problem = format!("{} is not an object", shown(value));
        return faults.add(path, problem, form(union, &[]));
    };
    let types = RULES.definitions.iter().filter(|(name, _)| name.ends_with(union));
    let types =
        types.filter_map(|(name, it)| Some((it.fields.get("type")?["const"].as_str()?, name, it)));
    let word = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    if let Some((_, name, definition)) = types.clone().find(|(kind, ..)| *kind == word) {
        check(name, value, path, faults);
        let fields = value.as_object_mut().into_iter();
        return fields.for_each(|it| it.retain(|key, _| definition.fields.contains_key(key)));
    }
    let problem = match fields.get("type") {
        None => MISSING.to_owned(),
        Some(kind) => {
            let near = nearest(word, types.map(|it| it.0).filter(|_| word.len() < NAME_LIMIT));
            let near = near.map(|near| format!(" (\"{near}\"?)")).unwrap_or_default();
            format!("there is no {} {}{near}", union.to_lowercase(), shown(kind))
        }
    };
    faults.add(&format!("{path}.type"), problem, form(union, &["type"]));
}

/// Adds all faults of the value at `path`, which must match this definition.
pub(super) fn check(name: &str, value: &Value, path: &str, faults: &mut SchemaFaults) {
    let Definition { index, fields } = &RULES.definitions[name];
    for (field, sent) in value.as_object().into_iter().flatten() {
        let elements = sent.as_array().map(Vec::len).or(sent.as_object().map(Map::len));
        if elements.is_some_and(|n| n > ELEMENTS_LIMIT) && fields.contains_key(field) {
            let problem = format!("it has more than {ELEMENTS_LIMIT} elements");
            return faults.add(&format!("{path}.{field}"), problem, form(name, &[field]));
        }
    }
    let mut found = Vec::new();
    if let Err(error) = RULES.schemas.validate(value, *index) {
        schema_problems(&error, value, &mut found);
    }
    for (field, schema) in fields {
        let problem = problem_beyond_schema(name, field, schema, value);
        found.extend(problem.map(|problem| (vec![field.clone()], problem)));
    }
    found.sort_by_cached_key(|(keys, _)| place(name, keys));
    found.dedup_by(|(later, _), (first, _)| later == first);
    for (keys, problem) in found {
        let path = keys.iter().fold(path.to_owned(), |path, key| child(&path, key));
        let keys: Vec<&str> = keys.iter().filter(|key| !is_number(key)).map(|key| &**key).collect();
        faults.add(&path, problem, form(name, &keys));
    }
}

/// Whether a key is the index of an element.
fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit())
}

/// The JSON path of an element or field of the value at `path`.
fn child(path: &str, key: &str) -> String {
    let is_word = (1..=QUOTE_LIMIT).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_number(key) {
        format!("{path}[{}]", brief(key))
    } else if is_word && !key.starts_with(|c: char| c.is_ascii_digit()) {
        format!("{path}.{key}")
    } else {
        format!("{path}[\"{}\"]", brief(key))
    }
}

/// Adds the problems that the schema finds in a value, each with the keys and indexes that lead to its place.
fn schema_problems(error: &ValidationError, value: &Value, found: &mut Vec<(Vec<String>, String)>) {
    if !error.causes.is_empty() {
        return error.causes.iter().for_each(|cause| schema_problems(cause, value, found));
    }
    let key = |token: &InstanceToken| match token {
        InstanceToken::Prop(key) => key.to_string(),
        InstanceToken::Item(n) => n.to_string(),
    };
    let mut keys: Vec<String> = error.instance_location.tokens.iter().map(key).collect();
    let part = value.pointer(&error.instance_location.to_string()).unwrap_or(&Value::Null);
    let value = shown(part);
    let problem = match &error.kind {
        ErrorKind::Required { want } => {
            for missing in want {
                keys.push((*missing).to_owned());
                found.push((keys.clone(), MISSING.to_owned()));
                keys.pop();
            }
            return;
        }
        // `problem_beyond_schema` checks this in UTF-16 units, of which there are never fewer than characters.
        ErrorKind::MaxLength { .. } => return,
        ErrorKind::Type { want, .. } => {
            let want: Vec<String> = want.iter().map(|kind| kind.to_string()).collect();
            format!("{value} is not of type {}", want.join(" or "))
        }
        ErrorKind::Minimum { want, .. } => format!("{value} is less than {want}"),
        ErrorKind::Maximum { want, .. } => format!("{value} is more than {want}"),
        ErrorKind::Const { want } => format!("{value} is not {want}"),
        ErrorKind::Pattern { .. } if keys.last().is_some_and(|key| key == "timestamp") => {
            format!("{value} is not a time in UTC")
        }
        _ => format!("{value} is not allowed here"),
    };
    found.push((keys, problem));
}

/// A problem with a field that the schema has no rule for.
fn problem_beyond_schema(name: &str, field: &str, schema: &Value, value: &Value) -> Option<String> {
    let text = value[field].as_str()?;
    let limit = schema["maxLength"].as_u64().and_then(|limit| usize::try_from(limit).ok());
    match (field, limit.and_then(|limit| excess(text, limit))) {
        ("path" | "cwd", _) if name.ends_with("Operation") => {
            path_problem(text).map(|problem| format!("{problem} (\"{}\")", brief(text)))
        }
        ("content", None) => content_problem(name, text, &value["encoding"]),
        (_, too_many) => too_many.map(|n| format!("it is {} too long", count(n, "character"))),
    }
}

fn content_problem(name: &str, content: &str, encoding: &Value) -> Option<String> {
    match Encoding::deserialize(encoding).unwrap_or_default().decode(content) {
        Err(error) => {
            Some(format!("the content is not base64: {}", error.to_string().trim_end_matches('.')))
        }
        Ok(bytes) if name == "CreateFileOperation" && bytes.len() > CONTENT_LIMIT => {
            Some(format!("the file would have {} bytes", bytes.len()))
        }
        Ok(_) => None,
    }
}

/// The correct form for the place that the keys lead to in a value of this definition; otherwise for a place around it.
pub(super) fn form(name: &str, keys: &[&str]) -> &'static str {
    let known = (0..=keys.len()).rev().find_map(|n| WORDS.forms.get(rank(name, &keys[..n])));
    known.map_or("", |(_, form)| form)
}

/// The sort key of a fault: fields are in the order of `WORDS`, and elements in the order of their indexes.
fn place(name: &str, keys: &[String]) -> Vec<usize> {
    let mut fields = Vec::new();
    let mut places = Vec::new();
    for key in keys {
        places.push(key.parse().unwrap_or_else(|_| {
            fields.push(&**key);
            rank(name, &fields)
        }));
    }
    places
}

/// The position in `WORDS` of the form for this definition, or of the general form; the end if there is neither.
fn rank(name: &str, keys: &[&str]) -> usize {
    let field = keys.join(".");
    let own = if keys.is_empty() { name.to_owned() } else { format!("{name}.{field}") };
    let place = WORDS.forms.iter().position(|(key, _)| *key == own || *key == field);
    place.unwrap_or(WORDS.forms.len())
}

/// Converts an error message of `serde_json` to plain words.
pub(super) fn in_plain_words(said: &str) -> &str {
    let mut problems = WORDS.json_problems.iter();
    problems.find(|(words, _)| said.contains(words)).map_or(said, |(_, plain)| plain)
}

/// The beginning of a value as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", brief(text)),
        other => brief(&other.to_string()),
    }
}

fn brief(text: &str) -> String {
    shortened(text, QUOTE_LIMIT)
}
