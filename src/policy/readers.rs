//! The subcommands of git that only read, and those that do so in some of their forms.

/// Whether a subcommand of git with these arguments leaves its repository as it is.
pub(super) fn only_reads(subcommand: &str, arguments: &[&str]) -> bool {
    let first = arguments.first().copied();
    let has = |options: &[&str]| arguments.iter().any(|argument| options.contains(argument));
    let verb = || arguments.iter().find(|argument| !argument.starts_with('-')).copied();
    if arguments.contains(&"--help") {
        return true;
    }
    match subcommand {
        "annotate" | "archive" | "blame" | "bugreport" | "cat-file" | "check-attr"
        | "check-ignore" | "check-mailmap" | "check-ref-format" | "cherry" | "count-objects"
        | "describe" | "diff" | "diff-files" | "diff-index" | "diff-tree" | "for-each-ref"
        | "format-patch" | "get-tar-commit-id" | "grep" | "help" | "log" | "ls-files"
        | "ls-remote" | "ls-tree" | "merge-base" | "name-rev" | "patch-id" | "range-diff"
        | "rev-list" | "rev-parse" | "shortlog" | "show" | "show-branch" | "show-ref"
        | "status" | "stripspace" | "var" | "verify-commit" | "verify-pack" | "verify-tag"
        | "version" | "whatchanged" => true,
        "fsck" => !has(&["--lost-found"]),
        // It changes files alone, unless it is asked for more.
        "apply" => !has(&["--index", "--cached", "-3", "--3way", "-N", "--intent-to-add"]),
        "branch" => lists(arguments, &BRANCH, &["-l", "--list"]),
        "tag" => lists(arguments, &TAG, &["-l", "--list", "-v", "--verify"]),
        "config" => config(arguments),
        "remote" => matches!(verb(), None | Some("show" | "get-url")),
        "stash" => matches!(first, Some("list" | "show")),
        "worktree" => first == Some("list"),
        "notes" => matches!(verb(), None | Some("list" | "show")),
        "reflog" => !matches!(verb(), Some("expire" | "delete" | "drop" | "write")),
        "submodule" => matches!(verb(), None | Some("status" | "summary")),
        "bisect" => matches!(first, Some("log" | "view" | "visualize" | "terms" | "help")),
        _ => false,
    }
}

/// Options that leave a list a list, and those among them that ask for one of some names; these
/// take a value where it is not joined to them.
struct Listing {
    plain: &'static [&'static str],
    asking: &'static [&'static str],
}

/// What asks for the names that fit something.
const ASKING: &[&str] = &["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
const BRANCH: Listing = Listing {
    plain: &[
        "-a",
        "-r",
        "-v",
        "-vv",
        "-i",
        "--all",
        "--remotes",
        "--verbose",
        "--show-current",
        "--ignore-case",
        "--color",
        "--no-color",
        "--column",
        "--no-column",
        "--sort",
        "--format",
        "--abbrev",
        "--no-abbrev",
        "--omit-empty",
        "-av",
        "-avv",
        "-rv",
        "-rvv",
        "-va",
        "-vva",
    ],
    asking: ASKING,
};
const TAG: Listing = Listing {
    plain: &[
        "-n",
        "-i",
        "--ignore-case",
        "--color",
        "--no-color",
        "--column",
        "--no-column",
        "--sort",
        "--format",
        "--omit-empty",
    ],
    asking: ASKING,
};

/// Whether `branch` or `tag` lists: without a name, or with names where a list is asked for.
fn lists(arguments: &[&str], Listing { plain, asking }: &Listing, list: &[&str]) -> bool {
    let (mut names, mut is_list, mut value) = (false, false, false);
    for argument in arguments {
        let option = argument.split('=').next().unwrap_or(argument);
        if std::mem::take(&mut value) {
            continue;
        }
        if !argument.starts_with('-') {
            names = true;
        } else if list.contains(&option) || asking.contains(&option) {
            is_list = true;
        } else if plain.contains(&option) {
            value = matches!(*argument, "--sort" | "--format");
        } else if !option.strip_prefix("-n").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        {
            return false;
        }
    }
    is_list || !names
}

/// Whether `config` asks: by an option, by its newer verbs, or with a key and no value.
fn config(arguments: &[&str]) -> bool {
    let mut words: Vec<&str> = Vec::new();
    let mut asks = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.split('=').next().unwrap_or(argument) {
            "-l" | "--list" | "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch"
            | "--get-color" | "--get-colorbool" => asks = true,
            "-f" | "--file" | "--blob" | "--type" | "--default" | "--comment"
                if !argument.contains('=') =>
            {
                rest.next();
            }
            "--global" | "--system" | "--local" | "--worktree" | "--file" | "--blob" | "--type"
            | "--bool" | "--int" | "--bool-or-int" | "--path" | "--expiry-date" | "--includes"
            | "--no-includes" | "-z" | "--null" | "--name-only" | "--show-origin"
            | "--show-scope" | "--default" | "--show-names" | "--no-show-names" | "--all"
            | "--regexp" | "--value" | "--fixed-value" | "--url" => {}
            option if option.starts_with('-') => return false,
            _ => words.push(argument),
        }
    }
    asks || match words.as_slice() {
        ["list" | "get", ..] => true,
        [key] => !matches!(*key, "edit" | "set" | "unset"),
        _ => false,
    }
}
