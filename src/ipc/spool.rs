//! The spool: a folder through which processes hand requests to the serving process and receive the answers, each as a
//! file. The requesting process keeps a lock on its request while it waits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Request, handle};
use crate::atomic;
use crate::engine::{Engine, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::lock::Lock;
use crate::settings::Config;
use crate::watch::Stop;

/// How often the spool is checked for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Older files that nobody has locked are abandoned.
const MAX_AGE: Duration = Duration::from_mins(1);
const UNKNOWN_REQUEST: &str = "the running deaddrop does not understand this request; is it the same version? Stop it, then try again";

/// The result of a request in the process that handled it.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestResult {
    /// The turn.
    pub turn: Turn,
    /// The warnings meanwhile, which the requesting process reports, too.
    pub warnings: Vec<String>,
}

/// Why a request failed: the error's message, its code, and its exit status.
#[derive(Debug, Serialize, Deserialize)]
struct RelayedError(String, String, u8);

/// The folder through which requests are handed over.
pub fn folder(config: &Config) -> PathBuf {
    config.sessions.join("control")
}

/// Hands a request to the serving process, and waits until it is handled. None if that process ended without starting
/// the request.
///
/// # Panics
/// Never: strings always become JSON.
pub fn hand_over(config: &Config, request: &Request, stop: &Stop) -> Result<Option<RequestResult>> {
    let folder = folder(config);
    fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
    let name = uuid::Uuid::new_v4().simple().to_string();
    let (request_path, answer_path) =
        (folder.join(format!("{name}.request")), folder.join(format!("{name}.answer")));
    let text = serde_json::to_vec(request).expect("strings become JSON");
    let _locked = write_locked(&folder, &request_path, &text)
        .map_err(|e| Error::io("write", &request_path, e))?;
    loop {
        if let Ok(text) = atomic::read_own(&answer_path) {
            let _ = fs::remove_file(&answer_path);
            let answer: Result<RequestResult, RelayedError> = serde_json::from_slice(&text)
                .map_err(|e| Error::failed(format!("an unreadable answer: {e}")))?;
            let relay = |RelayedError(why, code, status)| Error::relayed(why, code, status);
            return answer.map(Some).map_err(relay);
        }
        if stop.is_asked() || !Lock::is_held(config) {
            // If the request can be removed, it was not started; otherwise the answer may be there now.
            let withdrawn = fs::remove_file(&request_path).is_ok();
            if stop.is_asked() {
                return Err(Error::interrupted());
            }
            if withdrawn {
                return Ok(None);
            }
            if !answer_path.exists() && !Lock::is_held(config) {
                return Err(Error::failed(
                    "the running deaddrop ended before it answered; `deaddrop resume` finishes what it began, and `deaddrop log` shows it".to_owned(),
                ));
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Writes a request and locks it while the returned file is open. A request that is not locked is not carried out.
fn write_locked(folder: &Path, path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(folder)?;
    file.as_file().lock()?;
    file.write_all(text)?;
    file.persist(path).map_err(|e| e.error)
}

/// Handles the requests of other processes, and answers them. Returns those that succeeded.
///
/// # Panics
/// Never: strings and numbers always become JSON.
pub fn answer_all(
    engine: &mut Engine,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Vec<(Request, Turn)>> {
    let Ok(entries) = fs::read_dir(folder(&engine.config)) else { return Ok(Vec::new()) };
    let mut requests: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    requests.retain(|path| path.extension().is_some_and(|e| e == "request"));
    requests.sort_by_key(|path| path.metadata().and_then(|found| found.modified()).ok());
    let mut handled = Vec::new();
    for path in requests {
        if stop.is_asked() {
            break;
        }
        let taken = path.with_extension("taken");
        if is_abandoned(&path) {
            let _ = fs::remove_file(&path);
            continue;
        }
        // The requesting process may have withdrawn it.
        if fs::rename(&path, &taken).is_err() {
            continue;
        }
        let request = atomic::read_own(&taken).ok();
        let request = request.and_then(|text| serde_json::from_slice::<Request>(&text).ok());
        // The requesting process finds the outcomes in the session, and the warnings here.
        let mut warnings = Vec::new();
        let mut report = |event: Event<'_>| {
            if let Event::Warning(warning) = event {
                warnings.push(warning.to_owned());
            }
            observer.event(event);
        };
        let turn = match request.clone() {
            None => Err(Error::failed(UNKNOWN_REQUEST.to_owned())),
            Some(request) => handle(engine, request, &mut report),
        };
        let answer = match turn {
            Ok(turn) => Ok(RequestResult { turn, warnings }),
            // An error of the project itself stops the serving process.
            Err(e) if engine.is_within_turn() || e.is_disk_failure() => return Err(e),
            Err(e) => Err(RelayedError(e.to_string(), e.code().to_owned(), e.exit_status())),
        };
        let text = serde_json::to_vec(&answer).expect("strings and numbers become JSON");
        atomic::write_private(&path.with_extension("answer"), &text)?;
        let _ = fs::remove_file(&taken);
        handled.extend(request.zip(answer.ok().map(|done| done.turn)));
    }
    Ok(handled)
}

/// Whether no process waits for a request any more.
fn is_abandoned(path: &Path) -> bool {
    atomic::open_own(File::options().read(true), path)
        .is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// Removes files of requests that remained after a hard stop.
pub fn sweep(config: &Config) {
    let Ok(entries) = fs::read_dir(folder(config)) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        // A recent answer may still be read.
        let age = path.metadata().and_then(|found| found.modified()).ok();
        let is_old = age.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > MAX_AGE);
        if is_old && is_abandoned(&path) {
            let _ = fs::remove_file(path);
        }
    }
}
