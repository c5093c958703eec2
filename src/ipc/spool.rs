//! The folder through which requests are handed to the process that serves a project, and their
//! answers come back: a file each, held by whoever waits.

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

/// How often an answer is looked for.
const SOON: Duration = Duration::from_millis(5);
/// From this age on, what nobody holds is nobody's.
const OLD: Duration = Duration::from_mins(1);
const STRANGE: &str = "the running deaddrop does not understand this request; is it the same version? Stop it, then try again";

/// What came of a request in the process that handled it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// The turn.
    pub turn: Turn,
    /// The warnings meanwhile: they were reported there, and are for whoever asked.
    pub warnings: Vec<String>,
}

/// Why a request failed: the error's message, its code, and its exit status.
#[derive(Debug, Serialize, Deserialize)]
struct Failure(String, String, u8);

/// The folder through which requests are handed over.
pub fn folder(config: &Config) -> PathBuf {
    config.sessions.join("control")
}

/// Hands a request to the process that serves the project, and waits until it is handled. None
/// if that process ended first and left the request alone.
///
/// # Panics
/// Never: strings always become JSON.
pub fn hand_over(config: &Config, request: &Request, stop: &Stop) -> Result<Option<Done>> {
    let folder = folder(config);
    fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
    let name = uuid::Uuid::new_v4().simple().to_string();
    let (asked, answered) =
        (folder.join(format!("{name}.request")), folder.join(format!("{name}.answer")));
    let text = serde_json::to_vec(request).expect("strings become JSON");
    let _held = ask(&folder, &asked, &text).map_err(|e| Error::io("write", &asked, e))?;
    loop {
        if let Ok(text) = atomic::read_own(&answered) {
            let _ = fs::remove_file(&answered);
            let answer: Result<Done, Failure> = serde_json::from_slice(&text)
                .map_err(|e| Error::failed(format!("an answer that makes no sense: {e}")))?;
            let relay = |Failure(why, code, status)| Error::relayed(why, code, status);
            return answer.map(Some).map_err(relay);
        }
        if stop.is_asked() || !Lock::is_held(config) {
            // Whoever removes it decides that it is not done; else the answer may be there now.
            let taken_back = fs::remove_file(&asked).is_ok();
            if stop.is_asked() {
                return Err(Error::interrupted());
            }
            if taken_back {
                return Ok(None);
            }
            if !answered.exists() && !Lock::is_held(config) {
                return Err(Error::failed(
                    "the running deaddrop ended before it answered; `deaddrop resume` finishes what it began, and `deaddrop log` shows it".to_owned(),
                ));
            }
        }
        thread::sleep(SOON);
    }
}

/// Writes a request that is locked for as long as somebody waits for it: one that nobody holds any more
/// is not carried out.
fn ask(folder: &Path, path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = tempfile::Builder::new().suffix(".tmp").tempfile_in(folder)?;
    file.as_file().lock()?;
    file.write_all(text)?;
    file.persist(path).map_err(|e| e.error)
}

/// Does what others have asked for, and answers them. Returns those that it handled.
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
        // Somebody may have thought better of it.
        if fs::rename(&path, &taken).is_err() {
            continue;
        }
        let request = atomic::read_own(&taken).ok();
        let request = request.and_then(|text| serde_json::from_slice::<Request>(&text).ok());
        // Whoever asked finds the outcomes in the session, and all warnings here.
        let mut warnings = Vec::new();
        let mut report = |event: Event<'_>| {
            if let Event::Warning(warning) = event {
                warnings.push(warning.to_owned());
            }
            observer.event(event);
        };
        let turn = match request.clone() {
            None => Err(Error::failed(STRANGE.to_owned())),
            Some(request) => handle(engine, request, &mut report),
        };
        let answer = match turn {
            Ok(turn) => Ok(Done { turn, warnings }),
            // What is wrong with the project itself stops its process.
            Err(e) if engine.is_within_turn() || e.is_disk_failure() => return Err(e),
            Err(e) => Err(Failure(e.to_string(), e.code().to_owned(), e.exit_status())),
        };
        let text = serde_json::to_vec(&answer).expect("strings and numbers become JSON");
        atomic::write_private(&path.with_extension("answer"), &text)?;
        let _ = fs::remove_file(&taken);
        handled.extend(request.zip(answer.ok().map(|done| done.turn)));
    }
    Ok(handled)
}

/// Whether nobody waits for a request any more.
fn is_abandoned(path: &Path) -> bool {
    atomic::open_own(File::options().read(true), path)
        .is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// Removes what was left of requests when somebody was stopped hard.
pub fn sweep(config: &Config) {
    let Ok(entries) = fs::read_dir(folder(config)) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        // An answer may have been given just now.
        let age = path.metadata().and_then(|found| found.modified()).ok();
        let is_old = age.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > OLD);
        if is_old && is_abandoned(&path) {
            let _ = fs::remove_file(path);
        }
    }
}
