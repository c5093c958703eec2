//! Sessions on disk: one readable JSON file each, `sessions/{id}.json`, written whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Session, is_id, run_id, run_stem};
use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::RelPath;

/// The folder of sessions.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Sessions in `folder`, which need not exist yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The session with this id.
    pub fn load(&self, id: &str) -> Result<Session> {
        if !is_id(id) {
            return Err(Error::no_session(id, &self.folder));
        }
        self.load_stem(id)
    }

    /// The session, or the run, whose files have this name.
    pub fn load_stem(&self, stem: &str) -> Result<Session> {
        let id = match run_id(stem) {
            Some(id) => id,
            None if is_id(stem) => stem,
            None => return Err(Error::no_session(stem, &self.folder)),
        };
        let path = self.path(stem);
        match atomic::read_own(&path) {
            Ok(bytes) => read(&bytes, id).map_err(|problem| Error::damaged_session(&path, problem)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Error::no_session(stem, &self.folder))
            }
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }

    /// Whether nothing has that id yet.
    pub fn is_free(&self, id: &str) -> bool {
        !self.path(id).exists() && !self.path(&run_stem(id)).exists()
    }

    /// Writes a session, over what stood there of it. Its secret is nobody else's business.
    pub fn save(&self, session: &Session) -> Result<()> {
        atomic::write_private(&self.path(&session.stem()), &write(session))
    }

    /// Writes a session that the journal holds, too: so it need not be on disk at once.
    pub fn save_soon(&self, session: &Session) -> Result<()> {
        atomic::write_soon(&self.path(&session.stem()), &write(session))
    }

    /// The ids of all sessions, in no order.
    pub fn ids(&self) -> Result<Vec<String>> {
        Ok(self.stems()?.into_iter().filter(|stem| is_id(stem)).collect())
    }

    /// The names of all runs, in no order.
    pub fn runs(&self) -> Result<Vec<String>> {
        Ok(self.stems()?.into_iter().filter(|stem| run_id(stem).is_some()).collect())
    }

    /// All sessions and runs that wait for the person to approve something, the longest first.
    pub fn pending(&self) -> Result<Vec<Session>> {
        let mut pending: Vec<Session> = Vec::new();
        for stem in self.stems()? {
            if let Ok(session) = self.load_stem(&stem)
                && session.pending.is_some()
            {
                pending.push(session);
            }
        }
        pending.sort_by_key(|session| (session.updated_at, session.id.clone()));
        Ok(pending)
    }

    /// Removes what is left of a run.
    pub fn remove(&self, stem: &str) -> Result<()> {
        let path = self.path(stem);
        fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))
    }

    /// What the files of sessions and runs are named by.
    fn stems(&self) -> Result<Vec<String>> {
        let mut stems = Vec::new();
        for entry in walkdir::WalkDir::new(&self.folder).min_depth(1).max_depth(1) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) if e.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => {
                    break;
                }
                Err(e) => return Err(Error::io("list", &self.folder, e.into())),
            };
            let name = entry.file_name().to_string_lossy();
            let known = |stem: &&str| is_id(stem) || run_id(stem).is_some();
            stems.extend(name.strip_suffix(".json").filter(known).map(str::to_owned));
        }
        Ok(stems)
    }

    /// All sessions, the newest first; with them those whose files are damaged.
    pub fn list(&self) -> Result<(Vec<Session>, Vec<Error>)> {
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for id in self.ids()? {
            // Sessions' own times are whole seconds; the file's tells more.
            let written = fs::metadata(self.path(&id)).and_then(|found| found.modified()).ok();
            match self.load(&id) {
                Ok(session) => found.push((written, session)),
                Err(e) => damaged.push(e),
            }
        }
        found.sort_by(|(a_written, a), (b_written, b)| {
            let by_time = (b.updated_at, b_written).cmp(&(a.updated_at, a_written));
            by_time.then_with(|| a.id.cmp(&b.id))
        });
        Ok((found.into_iter().map(|(_, session)| session).collect(), damaged))
    }

    /// The named session, or the only open one.
    pub fn choose(&self, id: Option<&str>) -> Result<Session> {
        let session = match id {
            Some(id) => self.load(id)?,
            None => {
                let (sessions, mut damaged) = self.list()?;
                let newest = sessions.first().map(|session| session.id.clone());
                let mut open: Vec<Session> =
                    sessions.into_iter().filter(|session| !session.is_complete).collect();
                match (open.len(), damaged.len()) {
                    (0, 0) => return Err(Error::no_open_session(&self.folder, newest)),
                    (0, _) => return Err(damaged.remove(0)),
                    (1, 0) => open.remove(0),
                    // A damaged one may be open, too.
                    _ => {
                        let mut ids: Vec<String> =
                            open.into_iter().map(|session| session.id).collect();
                        if !damaged.is_empty() {
                            ids.push("and a damaged one, see `deaddrop sessions`".to_owned());
                        }
                        return Err(Error::several_sessions(ids));
                    }
                }
            }
        };
        if session.is_complete {
            return Err(Error::complete(&session.id));
        }
        Ok(session)
    }

    /// The incomplete sessions, the newest first. Where there is none, but a damaged file that may
    /// be one, that is an error.
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

/// A session's file: the session, and the paths that the tag protocol's "Session Management" names.
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
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::protocol::{Detail, Outcome, tags};

    #[test]
    fn a_session_comes_back_as_it_was_and_its_file_has_the_specified_fields() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
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
        let store = Store::new(dir.path());
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
        let store = Store::new(dir.path());
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
