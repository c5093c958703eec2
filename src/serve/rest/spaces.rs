//! Spaces: their records, and requests about whole spaces.

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
use super::{ApiCall, ApiError, ApiKeys, ApiReply, ListPage, fields};
use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::protocol::Digest;
use crate::runner::{environment_fault, removal};
use crate::session::Session;
use crate::session::store::SessionStore;
use crate::settings::{Config, Policy, RUN_POLICY};
use crate::watch::Stop;

/// The default lifetime of a space.
const LIFE: Seconds = Seconds(43_200);
/// The longest lifetime from now on, in seconds.
const LONGEST_LIFE: i64 = 10 * 366 * 24 * 3_600;
/// The longest record of a space, in bytes.
const LONGEST_RECORD: usize = 64 << 10;
/// How many spaces may exist, and how many records of destroyed ones are kept.
const SPACES: usize = 100;
const RECORDS: usize = 1_000;
/// How many extensions with an idempotency key are recorded for a space.
const EXTENDED: usize = 16;
const RECORD: &str = "space.json";

/// All spaces of a project.
pub(in crate::serve) struct Spaces {
    pub(super) keys: ApiKeys,
    config: Config,
    folder: PathBuf,
    all: Mutex<BTreeMap<String, Arc<RestSpace>>>,
}

/// A space.
pub(super) struct RestSpace {
    pub(super) id: String,
    /// Its own settings, or those of the project whose workspace it is on.
    pub(super) config: Config,
    pub(super) store: SessionStore,
    pub(super) stop: Stop,
    pub(super) changed: Condvar,
    folder: PathBuf,
    record: Mutex<SpaceRecord>,
    work: Mutex<Work>,
    /// Runs that were requested with an idempotency key.
    asked: Mutex<KeyedRuns>,
}

/// Stems and body digests of runs by the digest of their idempotency key. None until a client uses such a key.
type KeyedRuns = Option<HashMap<String, (String, Digest)>>;

/// The stored record of a space.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpaceRecord {
    id: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// None for the policy of the project.
    policy: Option<Preset>,
    #[serde(default)]
    overrides: Overrides,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    workspace: WorkspaceKind,
    created_at: Timestamp,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destroyed_at: Option<Timestamp>,
    /// The digests of the idempotency key and of the body of the request that created the space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<(Digest, Digest)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extended: Vec<Extended>,
}

/// The result of an extension with an idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extended {
    key: Digest,
    /// The digest of its request body.
    body: Digest,
    expires_at: Timestamp,
}

/// A policy that a space can have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Preset {
    Standard,
    Restrictive,
    Permissive,
}

impl Preset {
    fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Restrictive => "restrictive",
            Self::Permissive => "permissive",
        }
    }
}

/// The body of a request for a new space.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NewSpace {
    name: Option<String>,
    description: Option<String>,
    policy: Option<Preset>,
    policy_overrides: Option<Map<String, Value>>,
    capabilities: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    metadata: Option<Map<String, Value>>,
    ttl_seconds: Option<Seconds>,
    workspace: Option<WorkspaceKind>,
}

/// The body of a request that changes a space.
#[derive(Deserialize)]
struct Changes {
    name: Option<String>,
    description: Option<String>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Extension {
    duration: Seconds,
}

/// A lifetime or an extension.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "i64")]
struct Seconds(i64);

impl TryFrom<i64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: i64) -> Result<Self, Self::Error> {
        if seconds < 1 { Err("it must be at least 1 second") } else { Ok(Self(seconds)) }
    }
}

/// Where the files of a space are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WorkspaceKind {
    /// In its own workspace.
    Own,
    /// In the workspace of the project.
    Project,
}

impl SpaceRecord {
    /// When the space was destroyed or expired, if it was.
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

impl RestSpace {
    fn new(project: &Config, folder: PathBuf, record: SpaceRecord) -> Arc<Self> {
        let config = match record.workspace {
            WorkspaceKind::Own => project.for_space(&folder),
            WorkspaceKind::Project => project.clone(),
        };
        Arc::new(Self {
            id: record.id.clone(),
            store: SessionStore::new(&config.sessions),
            config,
            stop: Stop::default(),
            changed: Condvar::new(),
            folder,
            record: Mutex::new(record),
            work: Mutex::default(),
            asked: Mutex::default(),
        })
    }

    pub(super) fn record(&self) -> MutexGuard<'_, SpaceRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, KeyedRuns> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_own(&self) -> bool {
        self.record().workspace == WorkspaceKind::Own
    }

    /// The policy of its operations. On the project's workspace it never allows more than the project's present policy.
    pub(super) fn policy(&self) -> Result<Policy, ApiError> {
        policy_of(&self.record(), &self.config)
    }

    /// Changes the record on disk and in memory.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut SpaceRecord) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut record = self.record();
        let mut changed = record.clone();
        let done = change(&mut changed)?;
        save(&self.folder, &changed)?;
        *record = changed;
        Ok(done)
    }

    /// Destroys the space, and its workspace if it has its own. Records the destruction first.
    fn destroy(self: &Arc<Self>) -> Result<Value, ApiError> {
        self.change(|record| {
            record.destroyed_at = record.ended().or(Some(Timestamp::now()));
            Ok(())
        })?;
        let record = self.record().clone();
        match record.workspace {
            WorkspaceKind::Own => {
                self.close();
                self.clear_away();
            }
            // Only cancels runs: the process that serves the project ends them and continues.
            WorkspaceKind::Project => runs::cancel_all(self)?,
        }
        Ok(json!({ "id": self.id, "status": "destroyed", "destroyedAt": record.destroyed_at }))
    }

    /// Removes the files of a destroyed space. Files that cannot be removed are tried again at the next start.
    fn clear_away(&self) {
        if self.is_at_work() {
            return;
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _ = removal::put_aside(&entry.path());
            }
        }
        let _ = removal::remove_aside(&self.folder, &|| false);
    }
}

fn policy_of(record: &SpaceRecord, config: &Config) -> Result<Policy, ApiError> {
    let named = |name: &str| config.policy(name).map_err(|e| ApiError::failed(&e));
    match record.workspace {
        WorkspaceKind::Own => {
            let preset = record.policy.unwrap_or(Preset::Standard);
            let mut policy = record.overrides.apply(named(preset.name())?)?;
            if !config.sandbox.network {
                if record.overrides.opens_network() {
                    let why = "commands have no network here; only the person can allow it, with sandbox.network";
                    return Err(ApiError::invalid("policyOverrides.network", why));
                }
                // A preset cannot allow more than the person's settings.
                policy.network = Some(false);
            }
            Ok(policy)
        }
        WorkspaceKind::Project => {
            let ceiling = named(config.policy.as_deref().unwrap_or(RUN_POLICY))?;
            let base = record.policy.map_or_else(|| Ok(ceiling.clone()), |it| named(it.name()))?;
            narrowed(record.overrides.apply(base)?, &ceiling)
        }
    }
}

fn save(folder: &Path, record: &SpaceRecord) -> Result<(), ApiError> {
    let text = serde_json::to_vec_pretty(record).expect("texts and numbers become JSON");
    if text.len() > LONGEST_RECORD {
        let why = format!("the record of the space would have more than {LONGEST_RECORD} bytes");
        return Err(ApiError::invalid("metadata", &why));
    }
    atomic::write_private(&folder.join(RECORD), &text).map_err(|e| ApiError::failed(&e))
}

impl Spaces {
    /// Opens the spaces in a project's sessions folder, and continues runs in which the last process was stopped. `recovered_run`
    /// is the run that opening the project has finished.
    ///
    /// # Errors
    /// They cannot be read.
    pub(in crate::serve) fn open(
        config: &Config,
        recovered_run: Option<Session>,
    ) -> Result<Arc<Self>> {
        let folder = config.sessions.join("spaces");
        let mut all = BTreeMap::new();
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            entries => Some(entries.map_err(|e| Error::io("list", &folder, e))?),
        };
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path().join(RECORD);
            // Without a record, its creation was interrupted.
            let Ok(bytes) = atomic::read_own(&path) else { continue };
            let record: SpaceRecord = serde_json::from_slice(&bytes).map_err(|e| {
                let path = path.display();
                Error::failed(format!(
                    "{path} is damaged ({e}); move the folder away, and start again"
                ))
            })?;
            let space = RestSpace::new(config, entry.path(), record);
            if space.record().destroyed_at.is_some() {
                space.clear_away();
            } else if space.is_own() && is_begun(&space.config) {
                space.recover();
            }
            all.insert(space.id.clone(), space);
        }
        let space_of = |run: &Session| all.get(&run.run.as_ref()?.request.as_ref()?.space);
        if let Some((space, run)) = recovered_run.and_then(|run| Some((space_of(&run)?, run))) {
            space.keep_recovered(run);
        }
        let keys = ApiKeys::new(&config.sessions);
        Ok(Arc::new(Self { keys, config: config.clone(), folder, all: Mutex::new(all) }))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<RestSpace>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The space with this id, even if it is destroyed.
    fn find(&self, id: &str) -> Result<Arc<RestSpace>, ApiError> {
        self.all().get(id).cloned().ok_or_else(|| ApiError::no_space(id))
    }

    /// The space with this id, unless it is destroyed or expired.
    pub(super) fn get(&self, id: &str) -> Result<Arc<RestSpace>, ApiError> {
        let space = self.find(id)?;
        let ended = space.record().ended();
        if ended.is_some() { Err(ApiError::no_space(id)) } else { Ok(space) }
    }

    /// All spaces, the newest first.
    fn newest(&self) -> Vec<Arc<RestSpace>> {
        let mut all: Vec<_> = self.all().values().cloned().collect();
        all.sort_by_cached_key(|space| std::cmp::Reverse(space.record().created_at));
        all
    }

    /// Destroys expired spaces, and forgets the oldest destroyed ones.
    pub(in crate::serve) fn expire(&self) {
        let all = self.newest();
        let is_over = |space: &&Arc<RestSpace>| {
            let record = space.record();
            record.destroyed_at.is_none() && record.ended().is_some()
        };
        for space in all.iter().filter(is_over) {
            // A failure is tried again at the next check.
            let _ = space.destroy();
        }
        let gone = all.iter().filter(|space| space.record().destroyed_at.is_some());
        for space in gone.skip(RECORDS) {
            self.all().remove(&space.id);
            let _ = fs::remove_dir_all(&space.folder);
        }
    }

    /// Stops all work in all spaces.
    pub(in crate::serve) fn stop(&self) {
        let all: Vec<_> = self.all().values().cloned().collect();
        // First let no space begin more work: closing them takes time.
        all.iter().for_each(|space| space.end());
        all.iter().for_each(|space| space.stop.ask());
        all.iter().for_each(|space| space.close());
    }

    pub(super) fn create(&self, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
        let given: NewSpace = call.body()?;
        if self.config.guest.is_some() {
            let why =
                "the project's operations are executed in a guest, where spaces are not supported";
            return Err(ApiError::invalid("workspace", why));
        }
        let overrides = fields("policyOverrides", given.policy_overrides.unwrap_or_default())?;
        let env = given.env.unwrap_or_default();
        if let Some(fault) = environment_fault(&env) {
            return Err(ApiError::invalid("env", &fault));
        }
        let asked = call.key.clone().map(|key| (key, call.digest.clone()));
        let place = given.workspace.unwrap_or(WorkspaceKind::Own);
        let now = Timestamp::now();
        let life = given.ttl_seconds.unwrap_or(LIFE);
        let id = format!("spc_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let record = SpaceRecord {
            name: given.name.unwrap_or_else(|| format!("Space {id}")),
            description: given.description,
            policy: given.policy.or((place == WorkspaceKind::Own).then_some(Preset::Standard)),
            overrides,
            capabilities: given.capabilities,
            env,
            metadata: given.metadata,
            workspace: place,
            created_at: now,
            expires_at: until(now, now, life, "ttlSeconds")?,
            destroyed_at: None,
            asked: asked.clone(),
            extended: Vec::new(),
            id: id.clone(),
        };
        policy_of(&record, &self.config)?;
        let mut all = self.all();
        let has_its_key = |space: &&Arc<RestSpace>| {
            let record = space.record();
            record.asked.as_ref().zip(asked.as_ref()).is_some_and(|(its, this)| its.0 == this.0)
        };
        if let Some(space) = all.values().find(has_its_key) {
            let record = space.record();
            return match record.ended() {
                _ if record.asked != asked => Err(ApiError::other_body()),
                Some(_) => Err(ApiError::no_space(&record.id)),
                None => Ok(ApiReply::Data(StatusCode::CREATED, without_null(record.data()))),
            };
        }
        if all.values().filter(|space| space.record().ended().is_none()).count() >= SPACES {
            return Err(ApiError::new(
                StatusCode::CONFLICT,
                "QUOTA_EXCEEDED",
                format!("there are already {SPACES} spaces, the maximum; destroy one first"),
            ));
        }
        let folder = self.folder.join(&id);
        // Private, because the parent folder is.
        fs::create_dir_all(&folder)
            .map_err(|e| ApiError::failed(&Error::io("make the folder", &folder, e)))?;
        let space = RestSpace::new(&self.config, folder, record);
        fs::create_dir_all(&space.config.workspace).map_err(|e| {
            ApiError::failed(&Error::io("make the folder", &space.config.workspace, e))
        })?;
        let data = space.change(|record| Ok(record.data()))?;
        all.insert(id, space);
        Ok(ApiReply::Data(StatusCode::CREATED, without_null(data)))
    }

    pub(super) fn list(&self, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
        let status = call.query("status");
        let found = self.newest().into_iter().filter_map(|space| {
            let record = space.record();
            let shown = status.is_none_or(|status| status == record.status());
            shown.then(|| record.data())
        });
        Ok(ListPage::of(call)?.reply(found.collect()))
    }

    pub(super) fn show(&self, id: &str) -> Result<ApiReply, ApiError> {
        Ok(ApiReply::ok(self.find(id)?.record().data()))
    }

    pub(super) fn update(&self, id: &str, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
        let (space, changes): (_, Changes) = (self.get(id)?, call.body()?);
        let data = space.change(|record| {
            record.name = changes.name.unwrap_or_else(|| record.name.clone());
            record.description = changes.description.or(record.description.take());
            record.metadata = changes.metadata.or(record.metadata.take());
            Ok(record.data())
        })?;
        Ok(ApiReply::ok(data))
    }

    pub(super) fn extend(&self, id: &str, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
        let (space, Extension { duration }) = (self.get(id)?, call.body()?);
        let expires_at = space.change(|record| {
            let asked = call.key.as_ref().map(|key| (key, &call.digest));
            let is_asked = |it: &&Extended| asked.is_some_and(|(key, _)| it.key == *key);
            if let Some(done) = record.extended.iter().find(is_asked) {
                let is_same = done.body == call.digest;
                return if is_same { Ok(done.expires_at) } else { Err(ApiError::other_body()) };
            }
            let expires_at = until(Timestamp::now(), record.expires_at, duration, "duration")?;
            record.expires_at = expires_at;
            if let Some((key, body)) = asked {
                let (key, body) = (key.clone(), body.clone());
                record.extended.push(Extended { key, body, expires_at });
                let old = record.extended.len().saturating_sub(EXTENDED);
                record.extended.drain(..old);
            }
            Ok(expires_at)
        })?;
        Ok(ApiReply::ok(json!({ "id": id, "expiresAt": expires_at })))
    }

    pub(super) fn destroy(&self, id: &str) -> Result<ApiReply, ApiError> {
        Ok(ApiReply::ok(self.find(id)?.destroy()?))
    }
}

/// The time `seconds` after `from`.
fn until(
    now: Timestamp,
    from: Timestamp,
    seconds: Seconds,
    field: &str,
) -> Result<Timestamp, ApiError> {
    let latest = now.after(LONGEST_LIFE);
    from.after(seconds.0).filter(|time| Some(*time) <= latest).ok_or_else(|| {
        ApiError::invalid(
            field,
            &format!("a space can exist for at most {LONGEST_LIFE} seconds from now on"),
        )
    })
}

/// Whether the journal of a space has records, which may belong to an interrupted run.
fn is_begun(config: &Config) -> bool {
    let bytes = atomic::read_own(&config.sessions.join("journal"));
    bytes.is_ok_and(|bytes| bytes.first().is_some_and(|first| *first != 0))
}

/// Removes null fields, as in answers to POST.
pub(super) fn without_null(mut data: Value) -> Value {
    if let Value::Object(fields) = &mut data {
        fields.retain(|_, value| !value.is_null());
    }
    data
}
