//! Tables of command lines, and the decisions of the presets on them.

use crate::policy::{Verdict, command};
use crate::settings::Policy;

/// `lines.txt`: the policies (`s`tandard, `p`ermissive, `w`orkspace, `r`estrictive), the decision, the part of the rule
/// after its dot, and the line, with `\n` for line ends.
const LINES: &str = include_str!("lines.txt");

#[test]
fn every_line_of_the_table_is_decided_as_it_says() {
    let mut wrong = String::new();
    let mut count = 0;
    for (n, row) in LINES.lines().enumerate() {
        if row.trim().is_empty() || row.starts_with('#') {
            continue;
        }
        let mut fields = row.splitn(3, ' ').map(str::trim);
        let (Some(names), Some(expected), Some(line)) =
            (fields.next(), fields.next(), fields.next())
        else {
            panic!("lines.txt:{}: {row}", n + 1);
        };
        let line = line.trim().replace("⏎", "\n").replace("⇥", "\t");
        for letter in names.chars() {
            let name = Policy::PRESETS.iter().find(|name| name.starts_with(letter)).unwrap();
            let decision = command(&Policy::preset(name).unwrap(), &line, true);
            let rule = decision.rule().and_then(|rule| rule.split('.').next_back());
            let word = match decision {
                Verdict::Allow => "allow",
                Verdict::Ask(_) => "ask",
                Verdict::Deny(_) => "deny",
            };
            let found = rule.map_or(word.to_owned(), |rule| format!("{word}:{rule}"));
            let short = [
                ("blockedCommands", "blocked"),
                ("approvalRequired", "approval"),
                ("allowedCommands", "allowed"),
            ];
            let found = short.iter().fold(found, |found, (long, short)| found.replace(long, short));
            if found != expected {
                wrong += &format!(
                    "lines.txt:{} {name}: {found}, not {expected}: {line:?} ({:?})\n",
                    n + 1,
                    decision.reason()
                );
            }
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count >= 140, "{count}");
}

/// The columns are documented in `everyday.txt`.
const EVERYDAY: &str = include_str!("everyday.txt");

#[test]
fn everyday_lines_are_decided_as_the_table_says() {
    let mut wrong = String::new();
    for row in EVERYDAY.lines().filter(|row| !row.starts_with("# ")) {
        let (expected, line) = row.split_once(' ').unwrap();
        let line = line.replace('⏎', "\n").replace('⇥', "\t");
        let decide = |name: &str| match command(&Policy::preset(name).unwrap(), &line, true) {
            Verdict::Allow => 'a',
            Verdict::Ask(_) => '?',
            Verdict::Deny(_) => '-',
        };
        let found: String =
            ["standard", "permissive", "ask", "workspace"].map(decide).iter().collect();
        if found != expected {
            wrong += &format!("{found} {line:?}, not {expected}\n");
        }
        assert!(matches!(
            command(&Policy::preset("restrictive").unwrap(), &line, true),
            Verdict::Deny(_)
        ));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
