//! What deaddrop says, in rows of the terminal's width that end between words: a terminal by itself
//! breaks a line wherever it is full.

use super::columns::wide;

/// In fewer columns nothing is gained.
const NARROWEST: usize = 20;
/// A label, or columns of them, ends at most here.
const LABELS: usize = 24;

/// A text whose lines are broken at blanks, so that each row has at most `width` columns; what is in
/// backticks, and may be copied, stays together. The rows that go on with a line stand below what
/// follows its label, or are indented by two. A word that is wider than a row is left to the terminal.
pub(super) fn flowed(text: &str, width: usize) -> String {
    if width < NARROWEST {
        return text.to_owned();
    }
    text.split('\n').map(|line| broken(line, width)).collect::<Vec<_>>().join("\n")
}

fn broken(line: &str, width: usize) -> String {
    if wide(line) <= width {
        return line.to_owned();
    }
    let hang = hang(line, width);
    let (mut text, mut taken) = (String::new(), 0);
    for (n, word) in words(line, width - hang).into_iter().enumerate() {
        let room = wide(&word);
        // What ends a question, a blank, begins no row.
        if n > 0 && taken > hang && room > 0 && taken + 1 + room > width {
            text.truncate(text.trim_end_matches(' ').len());
            text.push_str(&format!("\n{}", " ".repeat(hang)));
            taken = hang;
        } else if n > 0 {
            text.push(' ');
            taken += 1;
        }
        text.push_str(&word);
        taken += room;
    }
    text
}

/// In which column a line goes on in its next row.
fn hang(line: &str, width: usize) -> usize {
    let leading = line.len() - line.trim_start_matches(' ').len();
    let mut labelled = line.char_indices().filter(|(at, c)| {
        *c != ' ' && *at > leading && *at <= LABELS && line[..*at].ends_with("  ")
    });
    // A path that has no room there is worth more than the column.
    let has_room =
        |hang: &usize| *hang <= width / 2 && line.split(' ').all(|word| wide(word) <= width - hang);
    let after_label = labelled.next_back().map(|(at, _)| wide(&line[..at]));
    after_label.filter(has_room).unwrap_or(leading + 2).min(width / 2)
}

/// The words of a line, with as many empty ones between them as there are further blanks. What stands in backticks
/// is one, if it has room in a row.
fn words(line: &str, room: usize) -> Vec<String> {
    let (mut words, mut quoted): (Vec<String>, _) = (Vec::new(), false);
    for word in line.split(' ') {
        match words.last_mut().filter(|_| quoted) {
            Some(last) => last.push_str(&format!(" {word}")),
            None => words.push(word.to_owned()),
        }
        quoted ^= word.matches('`').count() % 2 == 1;
    }
    let split = |word: String| {
        if wide(&word) > room {
            return word.split(' ').map(str::to_owned).collect();
        }
        vec![word]
    };
    words.into_iter().flat_map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(
            flowed("a file was changed since, and nothing was touched\nshort", 30),
            "a file was changed since, and\n  nothing was touched\nshort"
        );
        let row = "exactly as wide as the row";
        assert_eq!(flowed(row, row.len()), row);
        assert_eq!(flowed("宽宽宽宽宽 宽宽宽宽宽 宽", 20), "宽宽宽宽宽\n  宽宽宽宽宽 宽");
        // Blanks that somebody set stay where no row ends.
        assert_eq!(flowed("a   b        c and more words", 21), "a   b        c and\n  more words");
    }

    #[test]
    fn what_has_a_label_goes_on_below_what_follows_it() {
        assert_eq!(
            flowed("ok  commands    are isolated, all of them", 34),
            "ok  commands    are isolated, all\n                of them"
        );
        assert_eq!(flowed("a = 1  (/a/path/of/this)", 20), "a = 1\n  (/a/path/of/this)");
        assert_eq!(flowed("  Decide: yes or no or else", 20), "  Decide: yes or no\n    or else");
    }

    #[test]
    fn what_may_be_copied_stays_whole() {
        let path = "/a/folder/that/has/a/name/wider/than/this";
        assert_eq!(flowed(&format!("It is in {path}."), 20), format!("It is in\n  {path}."));
        assert_eq!(flowed(path, 20), path);
        assert_eq!(
            flowed("Then type `deaddrop new x` in it", 20),
            "Then type\n  `deaddrop new x`\n  in it"
        );
    }

    #[test]
    fn a_question_keeps_its_end() {
        assert_eq!(flowed("Do you agree to that? [y/N] ", 27), "Do you agree to that? [y/N] ");
        assert_eq!(flowed("Do you agree to that? [y/N] ", 24), "Do you agree to that?\n  [y/N] ");
        assert_eq!(flowed("a narrow one", 5), "a narrow one");
    }
}
