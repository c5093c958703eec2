//! Spaces: their records, and what is asked of them as a whole.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::overrides::{Overrides, narrowed};
use super::runs;
use super::worker::Work;
use super::{Call, Fault, Fields, Keys, Page, Reply};
use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::protocol::Digest;
use crate::runner::{aside, environment_fault};
use crate::session::Session;
use crate::session::store::Store;
use crate::settings::{Config, Policy, RUN_POLICY};
use crate::watch::Stop;

/// How long a space lives unless it says, in seconds.
const LIFE: i64 = 43_200;
/// No space is made, or extended, to live longer from now on, in seconds.
const LONGEST_LIFE: i64 = 10 * 366 * 24 * 3_600;
/// What is noted of a space is not longer, in bytes.
const LONGEST_RECORD: usize = 64 << 10;
/// So many spaces may be there, and so many records of destroyed ones are kept.
const SPACES: usize = 256;
const RECORDS: usize = 1_000;
/// The policies that a space can have, the default first.
const POLICIES: [&str; 3] = ["standard", "restrictive", "permissive"];
const RECORD: &str = "space.json";

/// All spaces of a project.
pub(in crate::serve) struct Spaces {
    pub(super) keys: Keys,
    config: Config,
    folder: PathBuf,
    all: Mutex<BTreeMap<String, Arc<Space>>>,
}

/// A space.
pub(super) struct Space {
    pub(super) id: String,
    /// Its own settings, or those of the project whose workspace it is on.
    pub(super) config: Config,
    pub(super) store: Store,
    pub(super) stop: Stop,
    pub(super) changed: Condvar,
    folder: PathBuf,
    record: Mutex<Record>,
    work: Mutex<Work>,
    /// The runs that were asked for with an idempotency key, and what was sent with it.
    asked: Mutex<Asked>,
}

/// Runs by what identifies their idempotency keys, each with what was sent; None until somebody uses such a key.
type Asked = Option<HashMap<String, (String, Digest)>>;

/// What is stored of a space.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    id: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// None for the policy of the project.
    policy: Option<String>,
    #[serde(default)]
    overrides: Overrides,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    workspace: Place,
    created_at: Timestamp,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destroyed_at: Option<Timestamp>,
    /// What it was asked for with: an idempotency key, and what was sent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<(Digest, Digest)>,
}

/// Where the files of a space are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// In a workspace of its own.
    Own,
    /// In the workspace of the project.
    Project,
}

impl Record {
    /// When it was destroyed, or has expired.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        let expired = Some(self.expires_at).filter(|at| *at <= Timestamp::now());
        self.destroyed_at.or(expired)
    }

    fn data(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "status": self.status(),
            "policy": self.policy,
            "workspace": self.workspace,
            "capabilities": self.capabilities,
            "metadata": self.metadata,
            "createdAt": self.created_at,
            "expiresAt": self.expires_at,
        })
    }

    fn status(&self) -> &'static str {
        if self.ended().is_some() { "destroyed" } else { "ready" }
    }
}

impl Space {
    fn new(project: &Config, folder: PathBuf, record: Record) -> Arc<Self> {
        let config = match record.workspace {
            Place::Own => project.of_space(&folder),
            Place::Project => project.clone(),
        };
        Arc::new(Self {
            id: record.id.clone(),
            store: Store::new(&config.sessions),
            config,
            stop: Stop::default(),
            changed: Condvar::new(),
            folder,
            record: Mutex::new(record),
            work: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_own(&self) -> bool {
        self.record().workspace == Place::Own
    }

    /// What operations may do. That of a space on the project's workspace is never wider than the project's, which
    /// may have become narrower since.
    pub(super) fn policy(&self) -> Result<Policy, Fault> {
        policy_of(&self.record(), &self.config)
    }

    /// Changes the record, durably.
    fn change(
        &self,
        change: impl FnOnce(&mut Record) -> Result<(), Fault>,
    ) -> Result<Value, Fault> {
        let mut record = self.record();
        let mut changed = record.clone();
        change(&mut changed)?;
        save(&self.folder, &changed)?;
        *record = changed;
        Ok(record.data())
    }

    /// Destroys the space, and all that is in it if that is its own. The record says so first.
    fn destroy(self: &Arc<Self>) -> Result<Value, Fault> {
        self.change(|record| {
            record.destroyed_at = record.ended().or(Some(Timestamp::now()));
            Ok(())
        })?;
        let record = self.record().clone();
        match record.workspace {
            Place::Own => {
                self.close();
                self.clear_away();
            }
            // The process that serves the project ends them, and goes on.
            Place::Project => runs::cancel_all(self)?,
        }
        Ok(json!({ "id": self.id, "status": "destroyed", "destroyedAt": record.destroyed_at }))
    }

    /// Removes what a destroyed space has left. What cannot be removed is tried again at the next start.
    fn clear_away(&self) {
        if self.is_at_work() {
            return;
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _ = aside::put_aside(&entry.path());
            }
        }
        let _ = aside::remove_aside(&self.folder, &|| false);
    }
}

fn policy_of(record: &Record, config: &Config) -> Result<Policy, Fault> {
    let named = |name: &str| config.policy(name).map_err(|e| Fault::failed(&e));
    match record.workspace {
        Place::Own => {
            let policy = named(record.policy.as_deref().unwrap_or(POLICIES[0]))?;
            let mut policy = record.overrides.apply(policy)?;
            if !config.sandbox.network {
                if record.overrides.opens_network() {
                    let why = "commands have no network here: the person sets sandbox.network";
                    return Err(Fault::invalid("policyOverrides.network", why));
                }
                // What a preset says of it is bounded by what the person has allowed.
                policy.network = Some(false);
            }
            Ok(policy)
        }
        Place::Project => {
            let ceiling = named(config.policy.as_deref().unwrap_or(RUN_POLICY))?;
            let base = record.policy.as_deref().map_or_else(|| Ok(ceiling.clone()), named)?;
            narrowed(record.overrides.apply(base)?, &ceiling)
        }
    }
}

fn save(folder: &Path, record: &Record) -> Result<(), Fault> {
    let text = serde_json::to_vec_pretty(record).expect("texts and numbers become JSON");
    if text.len() > LONGEST_RECORD {
        let why = format!("what is noted of a space has more than {LONGEST_RECORD} bytes");
        return Err(Fault::invalid("metadata", &why));
    }
    atomic::write_private(&folder.join(RECORD), &text).map_err(|e| Fault::failed(&e))
}

impl Spaces {
    /// The spaces below a project's sessions. What the last process was stopped in is gone on with, or was when the
    /// project was opened: then it is `taken_up`.
    ///
    /// # Errors
    /// They cannot be read.
    pub(in crate::serve) fn open(config: &Config, taken_up: Option<Session>) -> Result<Arc<Self>> {
        let folder = config.sessions.join("spaces");
        let mut all = BTreeMap::new();
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            entries => Some(entries.map_err(|e| Error::io("list", &folder, e))?),
        };
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path().join(RECORD);
            // Without one, it was not made to its end.
            let Ok(bytes) = atomic::read_own(&path) else { continue };
            let record: Record = serde_json::from_slice(&bytes).map_err(|e| {
                let path = path.display();
                Error::failed(format!(
                    "{path} is damaged ({e}); move the folder away, and start again"
                ))
            })?;
            let space = Space::new(config, entry.path(), record);
            if space.record().destroyed_at.is_some() {
                space.clear_away();
            } else if space.is_own() && is_begun(&space.config) {
                space.recover();
            }
            all.insert(space.id.clone(), space);
        }
        let space_of = |run: &Session| all.get(&run.run.as_ref()?.request.as_ref()?.space);
        if let Some((space, run)) = taken_up.and_then(|run| Some((space_of(&run)?, run))) {
            space.took_up(run);
        }
        let keys = Keys::new(&config.sessions);
        Ok(Arc::new(Self { keys, config: config.clone(), folder, all: Mutex::new(all) }))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Space>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The space with this id, which may be destroyed.
    fn find(&self, id: &str) -> Result<Arc<Space>, Fault> {
        self.all().get(id).cloned().ok_or_else(|| Fault::no_space(id))
    }

    /// The space with this id, which is neither destroyed nor expired.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Space>, Fault> {
        let space = self.find(id)?;
        let ended = space.record().ended();
        if ended.is_some() { Err(Fault::no_space(id)) } else { Ok(space) }
    }

    /// The newest first.
    fn newest(&self) -> Vec<Arc<Space>> {
        let mut all: Vec<_> = self.all().values().cloned().collect();
        all.sort_by_cached_key(|space| std::cmp::Reverse(space.record().created_at));
        all
    }

    /// Destroys what has expired, and forgets the oldest of what is destroyed.
    pub(in crate::serve) fn expire(&self) {
        let all = self.newest();
        let is_over = |space: &&Arc<Space>| {
            let record = space.record();
            record.destroyed_at.is_none() && record.ended().is_some()
        };
        for space in all.iter().filter(is_over) {
            // What fails now is tried again.
            let _ = space.destroy();
        }
        let gone = all.iter().filter(|space| space.record().destroyed_at.is_some());
        for space in gone.skip(RECORDS) {
            self.all().remove(&space.id);
            let _ = fs::remove_dir_all(&space.folder);
        }
    }

    /// Ends what runs, and begins nothing any more.
    pub(in crate::serve) fn stop(&self) {
        let all: Vec<_> = self.all().values().cloned().collect();
        // No space goes on with what waits while another one is closed.
        all.iter().for_each(|space| space.end());
        all.iter().for_each(|space| space.stop.ask());
        all.iter().for_each(|space| space.close());
    }

    pub(super) fn create(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let fields = Fields::of(call)?;
        let asked = call.key.clone().map(|key| (key, call.digest.clone()));
        let text = |name: &str| fields.take::<String>(name, "a text");
        let policy = text("policy")?;
        if policy.as_deref().is_some_and(|policy| !POLICIES.contains(&policy)) {
            return Err(Fault::invalid("policy", &format!("it is one of {}", POLICIES.join(", "))));
        }
        let place = fields.take("workspace", "\"own\" or \"project\"")?.unwrap_or(Place::Own);
        if self.config.guest.is_some() {
            let why =
                "the project's operations are carried out in a guest, where there are no spaces";
            return Err(Fault::invalid("workspace", why));
        }
        let overrides = fields.object("policyOverrides")?.map(Value::Object);
        let overrides = overrides.map_or_else(|| Ok(Overrides::default()), serde_json::from_value);
        let overrides = overrides.map_err(|e| Fault::invalid("policyOverrides", &e.to_string()))?;
        let env: BTreeMap<String, String> =
            fields.take("env", "an object of texts")?.unwrap_or_default();
        if let Some(fault) = environment_fault(&env) {
            return Err(Fault::invalid("env", &fault));
        }
        let now = Timestamp::now();
        let life = fields.seconds("ttlSeconds")?.unwrap_or(LIFE);
        let id = format!("spc_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let record = Record {
            name: text("name")?.unwrap_or_else(|| format!("Space {id}")),
            description: text("description")?,
            policy: policy.or((place == Place::Own).then(|| POLICIES[0].to_owned())),
            overrides,
            capabilities: fields.take("capabilities", "a list of texts")?,
            env,
            metadata: fields.object("metadata")?,
            workspace: place,
            created_at: now,
            expires_at: until(now, now, life, "ttlSeconds")?,
            destroyed_at: None,
            asked: asked.clone(),
            id: id.clone(),
        };
        policy_of(&record, &self.config)?;
        let mut all = self.all();
        let has_its_key = |space: &&Arc<Space>| {
            let record = space.record();
            record.asked.as_ref().zip(asked.as_ref()).is_some_and(|(its, this)| its.0 == this.0)
        };
        if let Some(space) = all.values().find(has_its_key) {
            let record = space.record();
            return match record.ended() {
                _ if record.asked != asked => Err(Fault::other_body()),
                Some(_) => Err(Fault::no_space(&record.id)),
                None => Ok(Reply::Data(StatusCode::CREATED, without_null(record.data()))),
            };
        }
        if all.values().filter(|space| space.record().ended().is_none()).count() >= SPACES {
            return Err(Fault::new(
                StatusCode::CONFLICT,
                "QUOTA_EXCEEDED",
                format!("there are {SPACES} spaces, and no more are possible; destroy one first"),
            ));
        }
        let folder = self.folder.join(&id);
        // All of it is the person's alone, as what is above it.
        fs::create_dir_all(&folder)
            .map_err(|e| Fault::failed(&Error::io("make the folder", &folder, e)))?;
        let space = Space::new(&self.config, folder, record);
        fs::create_dir_all(&space.config.workspace).map_err(|e| {
            Fault::failed(&Error::io("make the folder", &space.config.workspace, e))
        })?;
        let data = space.change(|_| Ok(()))?;
        all.insert(id, space);
        Ok(Reply::Data(StatusCode::CREATED, without_null(data)))
    }

    pub(super) fn list(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let status = call.query("status");
        let found = self.newest().into_iter().filter_map(|space| {
            let record = space.record();
            let shown = status.is_none_or(|status| status == record.status());
            shown.then(|| record.data())
        });
        Ok(Page::of(call)?.reply(found.collect()))
    }

    pub(super) fn show(&self, id: &str) -> Result<Reply, Fault> {
        Ok(Reply::ok(self.find(id)?.record().data()))
    }

    pub(super) fn update(&self, id: &str, call: &Call<'_>) -> Result<Reply, Fault> {
        let (space, fields) = (self.get(id)?, Fields::of(call)?);
        let name = fields.take("name", "a text")?;
        let description = fields.take("description", "a text")?;
        let metadata = fields.object("metadata")?;
        let data = space.change(|record| {
            record.name = name.unwrap_or_else(|| record.name.clone());
            record.description = description.or(record.description.take());
            record.metadata = metadata.or(record.metadata.take());
            Ok(())
        })?;
        Ok(Reply::ok(data))
    }

    pub(super) fn extend(&self, id: &str, call: &Call<'_>) -> Result<Reply, Fault> {
        let (space, fields) = (self.get(id)?, Fields::of(call)?);
        let missing = || Fault::invalid("duration", "it is missing: a number of seconds");
        let duration = fields.seconds("duration")?.ok_or_else(missing)?;
        let data = space.change(|record| {
            let now = Timestamp::now();
            record.expires_at = until(now, record.expires_at, duration, "duration")?;
            Ok(())
        })?;
        Ok(Reply::ok(json!({ "id": data["id"], "expiresAt": data["expiresAt"] })))
    }

    pub(super) fn destroy(&self, id: &str) -> Result<Reply, Fault> {
        Ok(Reply::ok(self.find(id)?.destroy()?))
    }
}

/// The time so many seconds after another one.
fn until(now: Timestamp, from: Timestamp, seconds: i64, field: &str) -> Result<Timestamp, Fault> {
    let latest = now.after(LONGEST_LIFE);
    from.after(seconds).filter(|time| Some(*time) <= latest).ok_or_else(|| {
        Fault::invalid(field, &format!("a space lives at most {LONGEST_LIFE} seconds from now on"))
    })
}

/// Whether the journal of a space has records: they may be of a run that was stopped.
fn is_begun(config: &Config) -> bool {
    let bytes = atomic::read_own(&config.sessions.join("journal"));
    bytes.is_ok_and(|bytes| bytes.first().is_some_and(|first| *first != 0))
}

/// An object without what it lacks, as the answer to POST has it.
pub(super) fn without_null(mut data: Value) -> Value {
    if let Value::Object(fields) = &mut data {
        fields.retain(|_, value| !value.is_null());
    }
    data
}
