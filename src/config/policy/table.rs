//! The tables `[policies.NAME]` of a settings file: a preset, and what is changed in it.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::Policy;
use crate::config::raw::{described, whole};
use crate::error::{Error, Result};
use crate::text::nearest;

/// What each setting of a policy is called, and what it must be.
const KEYS: [(&str, Kind); 12] = [
    ("preset", Kind::Preset),
    ("network", Kind::Switch),
    ("files.enabled", Kind::Switch),
    ("files.read_only", Kind::Switch),
    ("files.blocked", Kind::Patterns),
    ("files.allowed", Kind::Patterns),
    ("files.max_bytes", Kind::Number(1 << 50)),
    ("shell.enabled", Kind::Switch),
    ("shell.allowed", Kind::Patterns),
    ("shell.blocked", Kind::Patterns),
    ("shell.approval", Kind::Patterns),
    ("shell.timeout_seconds", Kind::Number(super::LONGEST_SECONDS)),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Preset,
    Switch,
    /// From 1 to this.
    Number(u64),
    Patterns,
}

impl Kind {
    fn form(self) -> String {
        match self {
            Self::Preset => format!("one of {}, as a string", Policy::PRESETS.join(", ")),
            Self::Switch => "true or false".to_owned(),
            Self::Number(most) => format!("a whole number from 1 to {most}"),
            Self::Patterns => "a list of patterns, as strings".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    Switch(bool),
    Number(u64),
    List(Vec<String>),
}

impl Value {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Switch(on) => (*on).into(),
            Self::Number(number) => (*number).into(),
            Self::List(items) => items.as_slice().into(),
        }
    }
}

/// What a person wrote of one policy, each setting with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    /// Where it was begun.
    origin: String,
    set: BTreeMap<&'static str, (Value, String)>,
}

/// What a person wrote of policies, by their names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::config) struct Tables(BTreeMap<String, Table>);

impl Tables {
    /// Each setting that is written: the policy's name, its own, its value and where it stands.
    pub(in crate::config) fn settings(
        &self,
    ) -> impl Iterator<Item = (&str, &'static str, serde_json::Value, &str)> {
        self.0.iter().flat_map(|(policy, table)| {
            table.set.iter().map(move |(key, (value, origin))| {
                (policy.as_str(), *key, value.to_json(), origin.as_str())
            })
        })
    }

    /// Takes what `over` sets, keeping the rest.
    pub(in crate::config) fn overlay(&mut self, over: Self) {
        for (name, table) in over.0 {
            match self.0.get_mut(&name) {
                Some(mine) => mine.set.extend(table.set),
                None => drop(self.0.insert(name, table)),
            }
        }
    }

    /// Reads the tables in `policies`, which begins at `origin`.
    pub(in crate::config) fn take(
        &mut self,
        policies: &DeValue<'_>,
        origin: &str,
        at: &impl Fn(usize) -> String,
    ) -> Result<()> {
        let wrong = |origin: &str, name: &str, value: &DeValue<'_>| {
            let what = described(value);
            let problem =
                format!("{name} cannot be {what}; it must be a table, as [policies.NAME]");
            Error::config(origin, problem)
        };
        let DeValue::Table(policies) = policies else {
            return Err(wrong(origin, "policies", policies));
        };
        for (key, value) in policies {
            let (name, origin) = (key.get_ref(), at(key.span().start));
            let DeValue::Table(settings) = value.get_ref() else {
                return Err(wrong(&origin, &format!("policies.{name}"), value.get_ref()));
            };
            if !Policy::can_be_called(name) {
                let problem = format!(
                    "policies holds '{name}' but a policy's name is made of letters, digits, - and _"
                );
                return Err(Error::config(origin, problem));
            }
            let mut table = Table { origin, set: BTreeMap::new() };
            table.take(name, settings, "", at)?;
            self.0.insert(name.to_string(), table);
        }
        Ok(())
    }
}

impl Table {
    /// Takes the settings of a policy's table, or of the table `within` it.
    fn take(
        &mut self,
        policy: &str,
        table: &DeTable<'_>,
        within: &str,
        at: &impl Fn(usize) -> String,
    ) -> Result<()> {
        for (key, value) in table {
            let origin = at(key.span().start);
            let name = format!("{within}{}", key.get_ref());
            let full = format!("policies.{policy}.{name}");
            if let (DeValue::Table(inner), "files" | "shell") = (value.get_ref(), &*name) {
                self.take(policy, inner, &format!("{name}."), at)?;
                continue;
            }
            if matches!(&*name, "files" | "shell") {
                let what = described(value.get_ref());
                return Err(Error::config(
                    origin,
                    format!("{full} cannot be {what}; it must be a table"),
                ));
            }
            let Some((known, kind)) = KEYS.into_iter().find(|(known, _)| *known == name) else {
                return Err(unknown(policy, &name, origin));
            };
            let value = read(kind, value.get_ref(), &full, &origin)?;
            self.set.insert(known, (value, origin));
        }
        Ok(())
    }
}

fn unknown(policy: &str, name: &str, origin: String) -> Error {
    let bare = |key: &str| key.rsplit('.').next() == Some(name);
    let known = || KEYS.iter().map(|(known, _)| *known);
    let meant = known().find(|key| bare(key)).or_else(|| match name.split_once('.') {
        // What all names of a table begin with would make any two of them alike.
        Some((table, name)) => {
            let names = || known().filter_map(|key| key.split_once('.'));
            let inner = names().filter(|(of, _)| *of == table).map(|(_, name)| name);
            let meant = nearest(name, inner)?;
            known().find(|key| key.split_once('.') == Some((table, meant)))
        }
        None => nearest(name, known()),
    });
    let rest = match meant {
        Some(meant) => format!("did you mean 'policies.{policy}.{meant}'?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    };
    Error::config(origin, format!("unknown setting 'policies.{policy}.{name}'; {rest}"))
}

fn read(kind: Kind, value: &DeValue<'_>, full: &str, origin: &str) -> Result<Value> {
    let is = |shown: &str| {
        Error::config(origin, format!("{full} is '{shown}' but must be {}", kind.form()))
    };
    match (kind, value) {
        (Kind::Preset, DeValue::String(text)) if Policy::PRESETS.contains(&text.as_ref()) => {
            Ok(Value::Text(text.to_string()))
        }
        (Kind::Preset, DeValue::String(text)) => Err(is(text)),
        (Kind::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
        (Kind::Number(most), DeValue::Integer(number)) => {
            let number = whole(number);
            match number.parse() {
                Ok(n) if (1..=most).contains(&n) => Ok(Value::Number(n)),
                _ => Err(is(&number)),
            }
        }
        (Kind::Patterns, DeValue::Array(items)) => {
            let items = items.iter().map(|item| match item.get_ref() {
                DeValue::String(text)
                    if text.trim().is_empty() || text.contains(char::is_control) =>
                {
                    let problem = format!("{full} holds '{}' but each item", text.escape_debug());
                    Err(Error::config(origin, format!("{problem} must be a pattern in one line")))
                }
                DeValue::String(text) => Ok(text.trim().to_owned()),
                other => Err(Error::config(
                    origin,
                    format!("{full} holds {}; it must be {}", described(other), kind.form()),
                )),
            });
            Ok(Value::List(items.collect::<Result<_>>()?))
        }
        (_, other) => {
            let problem =
                format!("{full} cannot be {}; it must be {}", described(other), kind.form());
            Err(Error::config(origin, problem))
        }
    }
}

/// All policies: the presets as they were changed, and the person's own.
pub(in crate::config) fn resolve(tables: &Tables) -> Result<BTreeMap<String, Policy>> {
    let presets = Policy::PRESETS.iter().filter_map(|name| Policy::preset(name));
    let mut policies: BTreeMap<String, Policy> =
        presets.map(|policy| (policy.name.clone(), policy)).collect();
    for (name, table) in &tables.0 {
        let preset = match table.set.get("preset") {
            Some((Value::Text(preset), origin)) => {
                if Policy::PRESETS.contains(&name.as_str()) && preset != name {
                    let problem = format!(
                        "policies.{name}.preset is '{preset}', but '{name}' is a preset itself; leave the line out, or give the policy a name of its own"
                    );
                    return Err(Error::config(origin, problem));
                }
                preset
            }
            _ => name,
        };
        let Some(mut policy) = Policy::preset(preset) else {
            let presets = Policy::PRESETS.join(", ");
            let meant = nearest(name, Policy::PRESETS)
                .map(|meant| format!("; or did you mean '[policies.{meant}]'?"));
            let problem = format!(
                "policies.{name} needs a preset that it changes: preset = \"standard\" (there are {presets}){}",
                meant.unwrap_or_default()
            );
            return Err(Error::config(table.origin.as_str(), problem));
        };
        policy.name.clone_from(name);
        for (key, (value, _)) in &table.set {
            policy.set(key, value.clone());
        }
        policies.insert(name.clone(), policy);
    }
    Ok(policies)
}

impl Policy {
    fn set(&mut self, key: &str, value: Value) {
        let (files, shell) = (&mut self.files, &mut self.shell);
        match (key, value) {
            ("network", Value::Switch(on)) => self.network = Some(on),
            ("files.enabled", Value::Switch(on)) => files.enabled = on,
            ("files.read_only", Value::Switch(on)) => files.read_only = on,
            ("files.blocked", Value::List(list)) => files.blocked = list,
            ("files.allowed", Value::List(list)) => files.allowed = list,
            ("files.max_bytes", Value::Number(n)) => files.max_bytes = Some(n),
            ("shell.enabled", Value::Switch(on)) => shell.enabled = on,
            ("shell.allowed", Value::List(list)) => shell.allowed = list,
            ("shell.blocked", Value::List(list)) => shell.blocked = list,
            ("shell.approval", Value::List(list)) => shell.approval = list,
            ("shell.timeout_seconds", Value::Number(n)) => shell.timeout_seconds = Some(n),
            _ => {}
        }
    }

    /// The policy as a table of `deaddrop.toml` that says all of it.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::config::Policy;
    /// let text = Policy::preset("restrictive").unwrap().to_toml();
    /// assert!(text.starts_with("[policies.restrictive]\nnetwork = false\nfiles.enabled = true\n"));
    /// ```
    pub fn to_toml(&self) -> String {
        let (files, shell) = (&self.files, &self.shell);
        let list = |items: &[String]| {
            let escaped = |item: &String| item.replace('\\', "\\\\").replace('"', "\\\"");
            let items: Vec<String> =
                items.iter().map(|item| format!("\"{}\"", escaped(item))).collect();
            format!("[{}]", items.join(", "))
        };
        let number = |n: Option<u64>| n.map(|n| n.to_string());
        // Of all presets `workspace` sets least, so that what is not said here is not said there.
        let is_own = !Self::PRESETS.contains(&self.name.as_str());
        let lines = [
            ("preset", is_own.then(|| "\"workspace\"".to_owned())),
            ("network", self.network.map(|on| on.to_string())),
            ("files.enabled", Some(files.enabled.to_string())),
            ("files.read_only", Some(files.read_only.to_string())),
            ("files.blocked", Some(list(&files.blocked))),
            ("files.allowed", Some(list(&files.allowed))),
            ("files.max_bytes", number(files.max_bytes)),
            ("shell.enabled", Some(shell.enabled.to_string())),
            ("shell.allowed", Some(list(&shell.allowed))),
            ("shell.blocked", Some(list(&shell.blocked))),
            ("shell.approval", Some(list(&shell.approval))),
            ("shell.timeout_seconds", number(shell.timeout_seconds)),
        ];
        let lines =
            lines.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", value?)));
        format!("[policies.{}]\n{}", self.name, lines.collect::<String>())
    }
}
