//! `daemon logs`: what the service has said, as its journal has it; else why there is nothing.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, ExitCode, Output, Stdio};

use super::{PATIENCE, Service, missing};
use crate::error::{Error, Result};
use crate::program::{self, Programs};
use crate::terminal::{Stream, Styled};
use crate::text::visible_line;

impl Service<'_> {
    pub(super) fn logs(&self, lines: u32, follow: bool) -> Result<ExitCode> {
        self.needs_unit()?;
        // Who follows would wait in vain, too.
        let told = self.journal(if follow { 1 } else { lines });
        let told = told.and_then(|asking| program::output(asking, PATIENCE));
        let told = told.map_err(|e| missing("journalctl", &e))?;
        if !told.status.success() || told.stdout.is_empty() && lines > 0 {
            let why = self.without_log(&told, follow);
            why.map_or(Ok(()), |why| Err(self.no_log(&why)))?;
        }
        if follow {
            return self.follow(lines);
        }
        let told = String::from_utf8_lossy(&told.stdout);
        match Stream::Out.text(&Styled::from(&*told)) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::io("write to", "standard output".as_ref(), e))
            }
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    /// Asks for so many of the newest lines.
    fn journal(&self, lines: u32) -> io::Result<Command> {
        let mut command = Programs::of(&self.context.config).command("journalctl")?;
        command.args(["--user", "--no-pager", "--quiet", "--output=cat", "--lines"]);
        command.args([&lines.to_string(), "--unit", &self.name]).stdin(Stdio::null());
        Ok(command)
    }

    fn follow(&self, lines: u32) -> Result<ExitCode> {
        let follow = || {
            let (reader, writer) = io::pipe()?;
            let mut journal = self.journal(lines)?;
            journal.arg("--follow").stdout(writer.try_clone()?).stderr(writer);
            let mut child = journal.spawn()?;
            // Its ends of the pipe are the child's alone then.
            drop(journal);
            for line in BufReader::new(reader).split(b'\n') {
                let line = String::from_utf8_lossy(&line?).into_owned();
                if Stream::Out.line(&Styled::from(line)).is_err() {
                    child.kill()?;
                }
            }
            child.wait()
        };
        match follow() {
            Ok(status) if status.success() => Ok(ExitCode::SUCCESS),
            Ok(status) => {
                let told = format!("journalctl has failed ({status}); what it said stands above");
                Err(Error::failed(told))
            }
            Err(e) => Err(missing("journalctl", &e).into()),
        }
    }

    /// Why the journal tells nothing; None where it may still, to somebody who follows.
    fn without_log(&self, told: &Output, follow: bool) -> Option<String> {
        let said = String::from_utf8_lossy(&told.stderr);
        let said = visible_line(said.trim()).into_owned();
        let name = &self.name;
        let cause = match self.systemctl(&["show", name, "--property=ActiveState"]) {
            Err(refused) if !refused.is_of_the_service => refused.told,
            _ if !told.status.success() => format!("journalctl has failed ({})", told.status),
            _ if follow => {
                self.context.talk.say(format!("{name} has said nothing yet; Ctrl-C ends this."));
                return None;
            }
            _ => format!(
                "{name} has said nothing that is kept: it has not run, which `deaddrop daemon status` tells, or the journal holds it no more"
            ),
        };
        Some(if said.is_empty() { cause } else { format!("{cause} (journalctl: {said})") })
    }

    fn no_log(&self, why: &str) -> Error {
        let told = format!(
            "there is no log to show: {why}. The service's words go to the journal of your own systemd and nowhere else; what its turns did stands in {} (`deaddrop log`), and `deaddrop doctor` looks at the rest",
            self.context.config.sessions.display()
        );
        Error::failed(told)
    }
}
