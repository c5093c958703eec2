//! Sessions on disk. Each is a readable JSON file, `sessions/{id}.json`, written atomically.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Session, is_id, run_id, run_stem};
use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::protocol::RelPath;

/// The folder of sessions.
#[derive(Debug, Clone)]
pub struct SessionStore {
    folder: PathBuf,
}

impl SessionStore {
    /// A store for the sessions in `folder`, which need not exist yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The session with this ID.
    pub fn load(&self, id: &str) -> Result<Session> {
        if is_id(id) { self.load_stem(id) } else { Err(Error::no_session(id, &self.folder)) }
    }

    /// The session or run with this file stem.
    pub fn load_stem(&self, stem: &str) -> Result<Session> {
        let missing = || Error::no_session(stem, &self.folder);
        let id = run_id(stem).or(Some(stem).filter(|id| is_id(id))).ok_or_else(missing)?;
        let path = self.path(stem);
        match atomic::read_own(&path) {
            Ok(bytes) => read(&bytes, id).map_err(|problem| Error::damaged_session(&path, problem)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(missing()),
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }

    /// Whether no session or run has this ID.
    pub fn is_free(&self, id: &str) -> bool {
        !self.path(id).exists() && !self.path(&run_stem(id)).exists()
    }

    /// Writes a session to disk, readable only by its owner since it contains the secret key.
    pub fn save(&self, session: &Session) -> Result<()> {
        atomic::write_private(&self.path(&session.stem()), &write(session))
    }

    /// Writes a session without a sync, since the journal also contains it.
    pub fn save_soon(&self, session: &Session) -> Result<()> {
        atomic::write_soon(&self.path(&session.stem()), &write(session))
    }

    /// The IDs of all sessions, unsorted.
    pub fn ids(&self) -> Result<Vec<String>> {
        Ok(self.stems()?.into_iter().filter(|stem| is_id(stem)).collect())
    }

    /// The stems of all runs, unsorted.
    pub fn runs(&self) -> Result<Vec<String>> {
        Ok(self.stems()?.into_iter().filter(|stem| !is_id(stem)).collect())
    }

    /// All sessions and runs that wait for an approval. The one that has waited longest comes first.
    pub fn pending(&self) -> Result<Vec<Session>> {
        let stems = self.stems()?.into_iter();
        let mut sessions: Vec<Session> =
            stems.filter_map(|stem| self.load_stem(&stem).ok()).collect();
        sessions.retain(|session| session.pending.is_some());
        sessions.sort_by_key(|session| (session.updated_at, session.id.clone()));
        Ok(sessions)
    }

    /// Records durably that a run is cancelled.
    pub fn cancel(&self, stem: &str, now: Timestamp) -> Result<()> {
        atomic::write_private(&self.cancellation(stem), now.to_string().as_bytes())
    }

    /// When a run was cancelled, if it was.
    pub fn cancelled(&self, stem: &str) -> Option<Timestamp> {
        atomic::read_own_text(&self.cancellation(stem)).ok()?.parse().ok()
    }

    /// The file that records the cancellation of a run.
    pub fn cancellation(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}.cancelled"))
    }

    /// Removes the files of a session or a run.
    pub fn remove(&self, stem: &str) -> Result<()> {
        let _ = fs::remove_file(self.cancellation(stem));
        let path = self.path(stem);
        fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))
    }

    /// The stems of all sessions and runs.
    fn stems(&self) -> Result<Vec<String>> {
        let fail = |e| Error::io("list", &self.folder, e);
        let entries = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(fail)?,
        };
        let mut stems = Vec::new();
        for entry in entries {
            let name = entry.map_err(fail)?.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            stems.extend(
                stem.filter(|stem| is_id(stem) || run_id(stem).is_some()).map(str::to_owned),
            );
        }
        Ok(stems)
    }

    /// All sessions, the newest first, and the errors of those whose files are damaged.
    pub fn list(&self) -> Result<(Vec<Session>, Vec<Error>)> {
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for id in self.ids()? {
            // The file's time is more precise than the session's whole seconds.
            let written = fs::metadata(self.path(&id)).and_then(|found| found.modified()).ok();
            match self.load(&id) {
                Ok(session) => found.push((written, session)),
                Err(e) => damaged.push(e),
            }
        }
        found.sort_by_key(|(written, session)| {
            (Reverse((session.updated_at, *written)), session.id.clone())
        });
        Ok((found.into_iter().map(|(_, session)| session).collect(), damaged))
    }

    /// The open session with this ID; without an ID, the only open session.
    pub fn choose(&self, id: Option<&str>) -> Result<Session> {
        if let Some(id) = id {
            let session = self.load(id)?;
            return if session.is_complete { Err(Error::complete(id)) } else { Ok(session) };
        }
        let (mut sessions, mut damaged) = self.list()?;
        let newest = sessions.first().map(|session| session.id.clone());
        sessions.retain(|session| !session.is_complete);
        match (sessions.len(), damaged.len()) {
            (0, 0) => Err(Error::no_open_session(&self.folder, newest)),
            (0, _) => Err(damaged.remove(0)),
            (1, 0) => Ok(sessions.remove(0)),
            // A damaged session may be open, too.
            _ => {
                let mut ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
                let hint = "and a damaged one, see `deaddrop status`".to_owned();
                ids.extend((!damaged.is_empty()).then_some(hint));
                Err(Error::several_sessions(&ids))
            }
        }
    }

    /// The open sessions, newest first. Fails if there are none but a file is damaged, since it may be an open session.
    pub fn open_sessions(&self) -> Result<Vec<Session>> {
        let (mut sessions, damaged) = self.list()?;
        sessions.retain(|session| !session.is_complete);
        match damaged.into_iter().next() {
            Some(error) if sessions.is_empty() => Err(error),
            _ => Ok(sessions),
        }
    }

    fn path(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}.json"))
    }
}

/// The content of a session's file: the session, and the paths required by the tag protocol, "Session Management".
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionFile<'a> {
    #[serde(flatten)]
    session: &'a Session,
    read_file_requests: Vec<&'a RelPath>,
}

fn write(session: &Session) -> Vec<u8> {
    let read_file_requests = session.read_requests().map(|(path, _)| path).collect();
    let file = SessionFile { session, read_file_requests };
    let mut bytes = serde_json::to_vec_pretty(&file).expect("strings and numbers become JSON");
    bytes.push(b'\n');
    bytes
}

fn read(bytes: &[u8], id: &str) -> Result<Session, String> {
    let session: Session = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if session.id != id {
        return Err(format!("it says that it is session '{}'", session.id));
    }
    if !session.is_valid() {
        return Err("it has no secret key".to_owned());
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Detail, Outcome, tags};

    #[test]
    fn a_session_comes_back_as_it_was_and_its_file_has_the_specified_fields() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path());
        let now: Timestamp = "2025-01-15T10:30:00Z".parse().unwrap();
        let mut session = Session::new("a1b2c3d4".into(), "Create\na calculator\n", vec![], now);
        let reply = tags::parse("[READ_FILE path=\"src/Calculator.cs\"]\n[READ_FILE]\n");
        let path = RelPath::parse("src/Calculator.cs").unwrap();
        let read = Outcome::of(
            &reply.steps[0],
            Detail::ReadLater { path, part: crate::protocol::Part::default() },
        );
        session.advance(vec![read], now);
        session.workspace = Some("workspace".to_owned());
        store.save(&session).unwrap();
        assert_eq!(store.load("a1b2c3d4").unwrap(), session);

        let text = fs::read_to_string(dir.path().join("a1b2c3d4.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["sequenceNumber"], 2);
        assert_eq!(json["isComplete"], false);
        assert_eq!(json["createdAt"], "2025-01-15T10:30:00Z");
        assert_eq!(json["task"], "Create\na calculator");
        assert_eq!(json["readFileRequests"], serde_json::json!(["src/Calculator.cs"]));
        assert_eq!(json["lastResults"][0]["success"], true);

        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let found = dir.path().join("a1b2c3d4.json").metadata().unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_session_in_a_journal_of_a_former_version_is_read() {
        let now: Timestamp = "2025-01-15T10:30:00Z".parse().unwrap();
        let mut session = Session::new("a1b2c3d4".into(), "x", vec![], now);
        let reply = tags::parse("[DELETE_FILE path=\"a\"]\n");
        let path = RelPath::parse("a").unwrap();
        session.advance(vec![Outcome::of(&reply.steps[0], Detail::Deleted { path })], now);
        let mut former = serde_json::to_value(&session).unwrap();
        for (name, former_name) in [("sessionId", "id"), ("sequenceNumber", "sequence")] {
            let value = former.as_object_mut().unwrap().remove(name).unwrap();
            former[former_name] = value;
        }
        former["lastResults"] = serde_json::to_value(&session.last_results).unwrap();
        assert_eq!(serde_json::from_value::<Session>(former).unwrap(), session);
    }

    #[test]
    fn a_damaged_file_is_named_and_the_others_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path());
        store.save(&Session::new("00000001".into(), "x", vec![], Timestamp::now())).unwrap();
        fs::write(dir.path().join("00000002.json"), "{").unwrap();
        fs::write(dir.path().join("notes.json"), "{").unwrap();
        let (sessions, damaged) = store.list().unwrap();
        assert_eq!(sessions.len(), 1);
        assert!(damaged[0].to_string().contains("00000002.json is damaged"), "{}", damaged[0]);
        assert!(store.load("../../etc").is_err());
    }

    #[test]
    fn the_newest_comes_first_also_within_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path());
        let now: Timestamp = "2025-01-15T10:30:00Z".parse().unwrap();
        let later: Timestamp = "2025-01-15T10:30:01Z".parse().unwrap();
        for (id, updated, milliseconds) in [
            ("00000001", now, 2),
            ("00000002", now, 3),
            ("00000003", now, 1),
            ("00000004", later, 0),
        ] {
            store.save(&Session::new(id.into(), "x", vec![], updated)).unwrap();
            let written = std::time::UNIX_EPOCH + std::time::Duration::from_millis(milliseconds);
            fs::File::open(store.path(id)).unwrap().set_modified(written).unwrap();
        }
        let ids = store.list().unwrap().0.into_iter().map(|session| session.id);
        assert_eq!(ids.collect::<Vec<_>>(), ["00000004", "00000002", "00000001", "00000003"]);
    }
}
