//! Validates messages with their JSON Schemas ("JSON Schema") and with the rules that a schema cannot
//! express ("Validation Rules"). Each fault names its JSON path and the correct form.
//!
//! Operations, events, edits and environment variables are validated one by one, each against its own
//! part of the schema. So a fault names the one that is wrong, and a hostile message of a million
//! wrong values takes no more memory than the faults that are kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use boon::{Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, ValidationError};
use serde::{Deserialize, de};
use serde_json::{Map, Value, json};

use super::{
    Approval, Decision, Encoding, Event, EventsMessage, FileEvent, Operation, OperationType,
    OperationsMessage, UtcTime, Version,
};
use crate::text::{count, nearest, visible_line};

/// The maximum length of a path, in UTF-16 units.
const PATH_LIMIT: usize = 255;
/// The maximum size of a new file, in bytes once it is decoded.
pub const CONTENT_LIMIT: usize = 10 << 20;
/// The number of faults that are kept of one message; the rest is counted.
const FAULT_LIMIT: usize = 100;
/// The number of characters that are quoted of a value.
const QUOTE_LIMIT: usize = 60;
/// Said of a field that is required.
const MISSING: &str = "it is missing";
/// Longer words are not compared with the names of operations.
const NAME_LIMIT: usize = 40;

/// The correct forms of definitions and fields, in the order in which faults are reported.
static FORMS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        forms: Vec<(String, String)>,
    }
    toml::from_str::<Table>(include_str!("data/forms.toml")).expect("a table of forms").forms
});

/// One thing that is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, as a JSON path: `$.operations[2].timeout`. `$` is the message itself.
    pub path: String,
    /// What is wrong there, without a full stop.
    pub problem: String,
    /// The correct form.
    pub form: String,
}

impl fmt::Display for Fault {
    /// Writes one line, whatever was sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. Correct form: {}", self.path, self.problem, self.form)
    }
}

/// Everything that is wrong with a message, in its order; never empty when it is an error.
///
/// Each fault is printed on a line of its own. At most 100 are kept, and the rest is counted.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::parse_operation;
/// let faults = parse_operation(r#"{"type": "shell", "command": "ls", "timeout": 5}"#).unwrap_err();
/// assert_eq!(
///     faults.to_string(),
///     "$.timeout: 5 is less than 1000. Correct form: \"timeout\": 30000 \
///      (milliseconds, a whole number from 1000 to 3600000)"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// Returns the faults that were kept, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.kept.iter()
    }

    /// Returns their number, including those that were not kept.
    pub fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    pub(super) fn add(&mut self, path: &str, problem: impl Into<String>, form: impl Into<String>) {
        if self.kept.len() < FAULT_LIMIT {
            let (path, problem, form) = (path.to_owned(), problem.into(), form.into());
            self.kept.push(Fault { path, problem, form });
        } else {
            self.more += 1;
        }
    }

    /// The only fault of something.
    pub(super) fn one(path: &str, problem: impl Into<String>, form: impl Into<String>) -> Self {
        let mut faults = Self::default();
        faults.add(path, problem, form);
        faults
    }

    /// Returns `value` if nothing is wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.kept.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
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

impl std::error::Error for Faults {}

/// Validates an operation (agent-spaces-protocol, "Operation Validation" and "JSON Schema"). Fields
/// that the specification does not name are ignored, as its schema does.
///
/// # Errors
/// Everything that is wrong with it.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{OperationType, validate_operation};
/// use serde_json::json;
/// let operation = validate_operation(&json!({"type": "readFile", "path": "a.txt"})).unwrap();
/// assert_eq!(operation.kind(), OperationType::ReadFile);
/// let faults = validate_operation(&json!({"type": "readFile", "path": "../a.txt"})).unwrap_err();
/// assert!(faults.to_string().starts_with("$.path: the path contains `..` (\"../a.txt\"). "));
/// ```
pub fn validate_operation(input: &Value) -> Result<Operation, Faults> {
    validated("Operation", input, operation)
}

/// Validates a whole operations message (agent-spaces-protocol, "Operations Message"). To carry out
/// what is well-formed in a message that is not, see [`receive`](super::receive).
///
/// # Errors
/// Everything that is wrong with it and its operations.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::validate_operations_message;
/// use serde_json::json;
/// let message = json!({"protocolVersion": "1.0", "operations": [{"type": "shell"}]});
/// let faults = validate_operations_message(&message).unwrap_err();
/// assert!(faults.to_string().starts_with("$.operations[0].command: it is missing"));
/// assert!(validate_operations_message(&json!({"protocolVersion": "1.0", "operations": []})).is_ok());
/// ```
pub fn validate_operations_message(input: &Value) -> Result<OperationsMessage, Faults> {
    validated("OperationsMessage", input, |value| {
        let operations = value["operations"].as_array().into_iter().flatten();
        Ok(OperationsMessage::new(operations.map(operation).collect::<Result<_, _>>()?))
    })
}

/// Validates an event (agent-spaces-protocol, "Event Types" and "Error Response Format"). What the
/// interfaces mark with `?` may be left out, but not be null; unknown fields are ignored.
///
/// # Errors
/// Everything that is wrong with it.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::validate_event;
/// use serde_json::json;
/// let event = json!({
///     "type": "editFile", "timestamp": "2025-01-15T10:30:00Z", "path": "a", "success": true,
///     "editsApplied": 2,
/// });
/// assert_eq!(validate_event(&event).unwrap().success(), Some(true));
/// let faults = validate_event(&json!({"type": "userMessage", "content": "Hi"})).unwrap_err();
/// assert!(faults.to_string().starts_with("$.timestamp: it is missing. Correct form: "));
/// ```
pub fn validate_event(input: &Value) -> Result<Event, Faults> {
    validated("Event", input, event)
}

/// Validates a whole events message (agent-spaces-protocol, "Events Message").
///
/// # Errors
/// Everything that is wrong with it and its events.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{Status, validate_events_message};
/// use serde_json::json;
/// let message = json!({
///     "protocolVersion": "1.0", "runId": "run_abc123", "status": "completed", "events": [],
/// });
/// assert_eq!(validate_events_message(&message).unwrap().status, Status::Completed);
/// let faults = validate_events_message(&json!({"protocolVersion": "1.0"})).unwrap_err();
/// assert_eq!(faults.count(), 3);
/// ```
pub fn validate_events_message(input: &Value) -> Result<EventsMessage, Faults> {
    validated("EventsMessage", input, |value| {
        let events = value["events"].as_array().into_iter().flatten();
        Ok(EventsMessage {
            protocol_version: Version,
            run_id: String::deserialize(&value["runId"])?,
            status: Deserialize::deserialize(&value["status"])?,
            events: events.map(event).collect::<Result<_, _>>()?,
        })
    })
}

/// Validates a decision of the user ("User Provides Approval Decision").
pub(super) fn validate_approval(input: &Value) -> Result<Approval, Faults> {
    let is_said = input.get("type").is_some_and(|kind| kind == "userMessage");
    // A text that says two things says nothing.
    if is_said && input.get("approval").is_none() {
        return validated("UserMessage", input, |said| {
            let decision = Decision::deserialize(&said["content"])?;
            Ok(Approval { operation_id: None, decision, reason: None })
        });
    }
    validated("ApprovalMessage", input, |value| Approval::deserialize(&value["approval"]))
}

/// Whether an operation may have this path: not absolute, without `..` anywhere (so `a..b` is
/// refused, too), without null characters, and at most 255 UTF-16 units long (agent-spaces-protocol,
/// "Path Validation", to the letter).
///
/// Whether it names a file is known when the operation is tried: the empty path and `C:\x` pass here
/// and are refused there (see [`RelPath`](crate::protocol::RelPath)).
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::is_valid_path;
/// assert!(is_valid_path("src/utils/helper.ts"));
/// assert!(!is_valid_path("/etc/passwd"));
/// assert!(!is_valid_path("../outside.txt"));
/// assert!(!is_valid_path("file\0.txt"));
/// assert!(is_valid_path(&"é".repeat(255)) && !is_valid_path(&"😀".repeat(128)));
/// ```
pub fn is_valid_path(path: &str) -> bool {
    path_problem(path).is_none()
}

fn path_problem(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        Some("the path is absolute")
    } else if path.contains("..") {
        Some("the path contains `..`")
    } else if path.contains('\0') {
        Some("the path contains a null character")
    } else if excess(path, PATH_LIMIT).is_some() {
        Some("the path is longer than 255 characters")
    } else {
        None
    }
}

/// By how many UTF-16 units, which is what JavaScript counts, a text is longer than `limit`.
fn excess(text: &str, limit: usize) -> Option<usize> {
    // A text has at most as many units as bytes.
    let is_short = text.len() <= limit;
    let units = if is_short { 0 } else { text.encode_utf16().count() };
    units.checked_sub(limit).filter(|excess| *excess > 0)
}

/// The definitions of all schemas by name; those of whole messages are named after their types.
static RULES: LazyLock<Rules> = LazyLock::new(Rules::load);

struct Rules {
    schemas: Schemas,
    definitions: BTreeMap<String, Definition>,
}

enum Definition {
    /// One of several objects, told apart by their `type`: the definition of each.
    Union(Vec<(String, String)>),
    Schema {
        index: SchemaIndex,
        /// The schema of each field.
        fields: Map<String, Value>,
        /// The fields whose elements are validated one by one, each with the definition for them.
        elements: Vec<(String, String)>,
    },
}

impl Rules {
    fn load() -> Self {
        let mut rules = Self { schemas: Schemas::new(), definitions: BTreeMap::new() };
        for (message, text) in [
            ("OperationsMessage", include_str!("schema/operations.json")),
            ("EventsMessage", include_str!("schema/events.json")),
            ("ApprovalMessage", include_str!("schema/approval.json")),
        ] {
            rules.add(message, serde_json::from_str(text).expect("a schema is JSON"));
        }
        rules
    }

    fn add(&mut self, message: &str, mut schema: Map<String, Value>) {
        let Some(Value::Object(mut definitions)) = schema.remove("definitions") else { return };
        let dialect = schema.remove("$schema");
        definitions.insert(message.to_owned(), Value::Object(schema));
        let mut elements: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (name, definition) in definitions.clone() {
            let fields = definition.get("properties").and_then(Value::as_object);
            for (field, schema) in fields.into_iter().flatten() {
                let keyword = ["items", "additionalProperties"].into_iter();
                let Some(keyword) = keyword.clone().find(|key| schema.get(key).is_some()) else {
                    continue;
                };
                let element = definitions[&name]["properties"][field]
                    .as_object_mut()
                    .and_then(|schema| schema.remove(keyword))
                    .unwrap_or_default();
                let element_name = match referenced(&element) {
                    Some(name) => name.to_owned(),
                    None => format!("{name}.{field}"),
                };
                definitions.entry(element_name.clone()).or_insert(element);
                elements.entry(name.clone()).or_default().push((field.clone(), element_name));
            }
        }
        let url = format!("http://deaddrop.invalid/{message}");
        let whole = json!({"$schema": dialect, "definitions": definitions});
        let mut compiler = Compiler::new();
        compiler.add_resource(&url, whole).expect("a valid URL");
        for (name, definition) in &definitions {
            let rule = if let Some(variants) = definition["oneOf"].as_array() {
                let tagged = |name: &str| {
                    let tag = definitions[name]["properties"]["type"]["const"].as_str()?;
                    Some((tag.to_owned(), name.to_owned()))
                };
                Definition::Union(
                    variants.iter().filter_map(referenced).filter_map(tagged).collect(),
                )
            } else {
                let pointer = format!("{url}#/definitions/{name}");
                Definition::Schema {
                    index: compiler.compile(&pointer, &mut self.schemas).expect("a valid schema"),
                    fields: definition["properties"].as_object().cloned().unwrap_or_default(),
                    elements: elements.remove(name).unwrap_or_default(),
                }
            };
            self.definitions.insert(name.clone(), rule);
        }
    }
}

/// The name of the definition that a schema refers to.
fn referenced(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/definitions/")
}

/// Returns the operation that a value is, or adds everything that is wrong with it.
pub(super) fn operation_at(value: &Value, path: &str, faults: &mut Faults) -> Option<Operation> {
    let before = faults.count();
    check("Operation", value, path, faults);
    if faults.count() > before {
        return None;
    }
    operation(value)
        .map_err(|error| faults.add(path, error.to_string(), form("Operation", &[])))
        .ok()
}

fn validated<T>(
    name: &str,
    input: &Value,
    read: impl Fn(&Value) -> serde_json::Result<T>,
) -> Result<T, Faults> {
    let mut faults = Faults::default();
    check(name, input, "$", &mut faults);
    let valid = faults.or(input)?;
    read(valid).map_err(|error| Faults::one("$", error.to_string(), form(name, &[])))
}

/// Adds everything that is wrong with a value of this definition, which is found at `path`.
pub(super) fn check(name: &str, value: &Value, path: &str, faults: &mut Faults) {
    match &RULES.definitions[name] {
        Definition::Union(variants) => match variant(name, variants, value, path) {
            Ok(name) => check(name, value, path, faults),
            Err(fault) => faults.add(&fault.path, fault.problem, fault.form),
        },
        Definition::Schema { index, fields, elements } => {
            let mut found: Vec<(usize, Fault)> = Vec::new();
            let mut note = |keys: &[&str], problem: String| {
                let path = keys.iter().fold(path.to_owned(), |path, key| child(&path, key));
                if !found.iter().any(|(_, fault)| fault.path == path) {
                    found.push((
                        rank(name, &keys[..keys.len().min(1)]),
                        Fault { path, problem, form: form(name, keys) },
                    ));
                }
            };
            if let Err(error) = RULES.schemas.validate(value, *index) {
                problems(&error, value).into_iter().for_each(|(keys, it)| note(&keys, it));
            }
            beyond_schema(name, fields, value).into_iter().for_each(|(key, it)| note(&[key], it));
            found.sort_by_key(|(rank, _)| *rank);
            found.into_iter().for_each(|(_, it)| faults.add(&it.path, it.problem, it.form));
            for (field, element) in elements {
                let path = child(path, field);
                match &value[field] {
                    Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| {
                        check_element(element, value, || format!("{path}[{n}]"), faults);
                    }),
                    Value::Object(map) => map.iter().for_each(|(key, value)| {
                        check_element(element, value, || child(&path, key), faults);
                    }),
                    _ => {}
                }
            }
        }
    }
}

/// Checks one of many elements. Once there are enough faults, only wrong elements are counted.
fn check_element(name: &str, value: &Value, path: impl Fn() -> String, faults: &mut Faults) {
    if let Definition::Schema { index, .. } = &RULES.definitions[name]
        && faults.kept.len() >= FAULT_LIMIT
    {
        faults.more += usize::from(RULES.schemas.validate(value, *index).is_err());
    } else {
        check(name, value, &path(), faults);
    }
}

/// The definition that the `type` of an object names.
fn variant<'a>(
    name: &str,
    variants: &'a [(String, String)],
    value: &Value,
    path: &str,
) -> Result<&'a str, Fault> {
    if !value.is_object() {
        let (path, problem) = (path.to_owned(), format!("{} is not an object", shown(value)));
        return Err(Fault { path, problem, form: form(name, &[]) });
    }
    let names = || variants.iter().map(|(kind, _)| &**kind);
    let problem = match value.get("type") {
        None => MISSING.to_owned(),
        Some(kind) => {
            let word = kind.as_str().unwrap_or_default();
            if let Some((_, definition)) = variants.iter().find(|(kind, _)| kind == word) {
                return Ok(definition);
            }
            let near = nearest(word, names().filter(|_| word.len() < NAME_LIMIT));
            let near = near.map(|near| format!(" (\"{near}\"?)")).unwrap_or_default();
            format!("there is no {} {}{near}", name.to_lowercase(), shown(kind))
        }
    };
    let names: Vec<String> = names().map(|name| format!("\"{name}\"")).collect();
    let form = format!("\"type\": one of {}", names.join(", "));
    Err(Fault { path: child(path, "type"), problem, form })
}

/// What its schema finds wrong with a value: the keys that lead to each place, and the problem there.
fn problems<'e>(error: &'e ValidationError<'_, '_>, value: &Value) -> Vec<(Vec<&'e str>, String)> {
    if !error.causes.is_empty() {
        return error.causes.iter().flat_map(|cause| problems(cause, value)).collect();
    }
    let keys: Vec<&str> = error
        .instance_location
        .tokens
        .iter()
        .filter_map(|token| match token {
            InstanceToken::Prop(key) => Some(&**key),
            // Elements are validated one by one.
            InstanceToken::Item(_) => None,
        })
        .collect();
    let value = shown(keys.iter().fold(value, |value, key| &value[*key]));
    let problem = match &error.kind {
        ErrorKind::Required { want } => {
            let missing = want.iter().map(|key| [&*keys, &[*key]].concat());
            return missing.map(|keys| (keys, MISSING.to_owned())).collect();
        }
        // Counted in UTF-16 units by `beyond_schema`, of which there are never fewer.
        ErrorKind::MaxLength { .. } => return Vec::new(),
        ErrorKind::Type { want, .. } => {
            let want: Vec<String> = want.iter().map(|kind| kind.to_string()).collect();
            format!("{value} is not of type {}", want.join(" or "))
        }
        ErrorKind::Minimum { want, .. } => format!("{value} is less than {want}"),
        ErrorKind::Maximum { want, .. } => format!("{value} is more than {want}"),
        ErrorKind::Const { want } => format!("{value} is not {want}"),
        _ => format!("{value} is not allowed here"),
    };
    vec![(keys, problem)]
}

/// What is wrong with the fields of an object that its schema cannot express.
fn beyond_schema<'a>(
    name: &str,
    fields: &'a Map<String, Value>,
    value: &Value,
) -> Vec<(&'a str, String)> {
    let is_operation = name.ends_with("Operation");
    let mut found = Vec::new();
    for (field, schema) in fields {
        let Some(text) = value[field].as_str() else { continue };
        let limit = schema["maxLength"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let too_many = limit.and_then(|limit| excess(text, limit));
        let problem = match (&**field, too_many) {
            ("path" | "cwd", _) if is_operation => {
                path_problem(text).map(|problem| format!("{problem} (\"{}\")", brief(text)))
            }
            ("timestamp", _) => UtcTime::parse(text)
                .is_none()
                .then(|| format!("\"{}\" is not a time in UTC", brief(text))),
            ("content", None) => content_problem(name, text, &value["encoding"]),
            (_, too_many) => too_many.map(|n| format!("it is {} too long", count(n, "character"))),
        };
        found.extend(problem.map(|problem| (&**field, problem)));
    }
    found
}

fn content_problem(name: &str, content: &str, encoding: &Value) -> Option<String> {
    let encoding = encoding.as_str().and_then(Encoding::named).unwrap_or_default();
    match encoding.decode(content) {
        Err(bad) => Some(bad.to_string()),
        Ok(bytes) if name == "CreateFileOperation" && bytes.len() > CONTENT_LIMIT => {
            Some(format!("the file would have {} bytes", bytes.len()))
        }
        Ok(_) => None,
    }
}

/// The correct form of the place to which the keys lead in a value of this definition: from the table,
/// or what the schema says.
pub(super) fn form(name: &str, keys: &[&str]) -> String {
    if let Some((_, form)) = FORMS.get(rank(name, keys)) {
        return form.clone();
    }
    let fields = match &RULES.definitions[name] {
        Definition::Schema { fields, .. } => keys.first().and_then(|key| fields.get(*key)),
        Definition::Union(_) => None,
    };
    let outer = fields.unwrap_or(&Value::Null);
    let schema = keys.iter().skip(1).fold(outer, |schema, key| &schema["properties"][*key]);
    format!("\"{}\": a value of the schema {schema}", keys.last().unwrap_or(&name))
}

/// The place in [`FORMS`], a definition's own form before the general one; behind all if it is not there.
fn rank(name: &str, keys: &[&str]) -> usize {
    // The name of an element is that of its field.
    let field = keys.last().copied().or(name.rsplit('.').next()).unwrap_or_default();
    let own = format!("{name}.{field}");
    let place = FORMS.iter().position(|(key, _)| *key == own || key == field);
    place.unwrap_or(FORMS.len())
}

/// The beginning of a value as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", brief(text)),
        other => brief(&other.to_string()),
    }
}

/// The beginning of a text, on one line and with nothing hidden in it.
fn brief(text: &str) -> String {
    match text.char_indices().nth(QUOTE_LIMIT) {
        None => visible_line(text).into_owned(),
        Some((cut, _)) => format!("{}…", visible_line(&text[..cut])),
    }
}

/// The JSON path of a field of the object at `path`.
fn child(path: &str, key: &str) -> String {
    let is_word = (1..=QUOTE_LIMIT).contains(&key.len())
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_word { format!("{path}.{key}") } else { format!("{path}[\"{}\"]", brief(key)) }
}

fn operation(value: &Value) -> serde_json::Result<Operation> {
    let kind = value["type"].as_str().and_then(OperationType::named);
    Ok(match kind.ok_or_else(|| de::Error::missing_field("type"))? {
        OperationType::Message => Operation::Message(Deserialize::deserialize(value)?),
        OperationType::CreateFile => Operation::CreateFile(Deserialize::deserialize(value)?),
        OperationType::ReadFile => Operation::ReadFile(Deserialize::deserialize(value)?),
        OperationType::EditFile => Operation::EditFile(Deserialize::deserialize(value)?),
        OperationType::DeleteFile => Operation::DeleteFile(Deserialize::deserialize(value)?),
        OperationType::Shell => Operation::Shell(Deserialize::deserialize(value)?),
    })
}

fn event(value: &Value) -> serde_json::Result<Event> {
    Ok(match value["type"].as_str().unwrap_or_default() {
        "userMessage" => Event::UserMessage(Deserialize::deserialize(value)?),
        "message" => Event::Message(Deserialize::deserialize(value)?),
        "createFile" => Event::CreateFile(file_event(value, &["bytesWritten"])?),
        "readFile" => Event::ReadFile(file_event(value, &["content", "encoding", "size"])?),
        "editFile" => Event::EditFile(file_event(value, &["editsApplied"])?),
        "deleteFile" => Event::DeleteFile(file_event(value, &[])?),
        "shell" => Event::Shell(Deserialize::deserialize(value)?),
        "approvalRequired" => Event::ApprovalRequired(Deserialize::deserialize(value)?),
        "policyDenied" => Event::PolicyDenied(Deserialize::deserialize(value)?),
        "error" => Event::Error(Deserialize::deserialize(value)?),
        other => return Err(de::Error::unknown_variant(other, &[])),
    })
}

/// Reads the event of a file operation; fields of the others are ignored, like unknown ones.
fn file_event(value: &Value, own: &[&str]) -> serde_json::Result<FileEvent> {
    const COMMON: [&str; 5] = ["operationId", "timestamp", "path", "success", "error"];
    let is_known = |key: &str| COMMON.contains(&key) || own.contains(&key);
    let fields = value.as_object().into_iter().flatten().filter(|(key, _)| is_known(key));
    let fields: Map<String, Value> = fields.map(|(key, it)| (key.clone(), it.clone())).collect();
    FileEvent::deserialize(Value::Object(fields))
}
