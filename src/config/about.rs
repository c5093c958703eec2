//! What each setting is for, in a sentence for the person.

/// In the order of the table of settings.
const ABOUT: [(&str, &str); 29] = [
    ("workspace_dir", "the folder that replies may read and change, and where commands run"),
    ("inbox_dir", "where replies are dropped"),
    ("outbox_dir", "where outboxes are written"),
    ("sessions_dir", "where sessions and the journal are kept"),
    ("approvals_dir", "where decisions may be dropped"),
    ("command_timeout_seconds", "how long a command may take, in seconds"),
    ("max_output_length", "how many characters of a command's output the LLM sees"),
    ("max_tokens", "how many tokens an outbox is at most"),
    ("first_contents", "whether the first outbox shows contents of the workspace unasked"),
    ("part_characters", "how many characters a part of an outbox may have (`show --part`)"),
    ("policy", "what operations may do without asking; empty: `new` and `run` choose"),
    ("sandbox", "how commands are confined"),
    ("sandbox.network", "whether commands may use the network"),
    ("sandbox.writable", "what commands may change beside the workspace"),
    ("sandbox.readable", "what commands may read beside the system and toolchains"),
    ("sandbox.env", "environment variables that commands see: yours, or with a value"),
    ("sandbox.max_processes", "how many processes and threads a command may have"),
    ("sandbox.max_file_bytes", "how large a file a command may write"),
    ("sandbox.max_memory_bytes", "how much address space a process may take; 0 is no limit"),
    ("sandbox.min_free_bytes", "a command ends when the disk has less left; 0 is no watch"),
    ("protected_names", "files and folders that only you may write, at any depth"),
    ("checkpoints", "whether what turns change is kept, so that it can be undone"),
    ("checkpoint_file_bytes", "how large a file is kept at most"),
    ("checkpoint_ignored_file_bytes", "how large an ignored file is kept at most"),
    ("checkpoint_ignored_bytes", "how much is kept of all ignored files"),
    ("checkpoint_max_bytes", "how much is kept of all turns together"),
    ("secrets", "what is done with secrets that an outbox would show"),
    ("secrets_allow", "files whose contents are shown whatever they hold"),
    ("notify", "how `new`, `resume` and `watch` announce that a turn is done"),
];

/// What the setting `name` is for; empty where nothing is known of it.
pub fn about(name: &str) -> &'static str {
    ABOUT.iter().find(|(known, _)| *known == name).map_or("", |(_, about)| about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KEYS;

    #[test]
    fn every_setting_has_words() {
        let named: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(ABOUT.map(|(name, _)| name).to_vec(), named);
        assert!(named.iter().all(|name| !about(name).is_empty()));
    }
}
