//! The manual as a reader of it finds it.

use crate::support::Base;

/// A page without what roff makes of it.
fn plain(page: &str) -> String {
    let mut page = page.replace("\\-", "-");
    for font in ["\\fB", "\\fI", "\\fR"] {
        page = page.replace(font, "");
    }
    page
}

#[test]
fn a_synopsis_says_what_options_take() {
    let base = Base::new();
    for command in ["", "new", "config set", "diff", "daemon logs", "daemon install", "rpc", "log"]
    {
        let words = ["man"].into_iter().chain(command.split_whitespace());
        let page = plain(&base.run(&words.collect::<Vec<_>>()).ok().stdout);
        let (_, rest) = page.split_once(".SH SYNOPSIS\n").unwrap();
        let synopsis = rest.lines().next().unwrap();
        assert!(synopsis.contains("[-C DIR]"), "{command}: {synopsis}");
        // As the list of options has them: `-n, --lines <N>`.
        let (_, options) = page.split_once(".SH OPTIONS\n").unwrap();
        let mut seen = 0;
        for line in options.lines().filter(|line| line.starts_with('-')) {
            let Some((name, value)) = line.split_once(" <") else { continue };
            let Some(value) = value.split_once('>').map(|(value, _)| value) else { continue };
            let name = name.rsplit(", ").next().unwrap();
            assert!(synopsis.contains(&format!("{name} {value}]")), "{name} {value}: {synopsis}");
            seen += 1;
        }
        assert!(seen > 5, "{command}: {page}");
    }
    let page = plain(&base.run(&["man", "daemon", "logs"]).ok().stdout);
    assert!(page.contains("[-n|--lines N]"), "{page}");
}
