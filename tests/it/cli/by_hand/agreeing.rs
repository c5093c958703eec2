//! Questions at the terminal, answered by typing, and what a person is warned of there.

use super::{Person, WIDTHS, flat, holds};
use crate::support::Project;

const QUESTION: &str = "Do you agree?";

#[test]
fn settings_of_somebody_elses_are_shown_and_asked_about() {
    for columns in WIDTHS {
        let base = Project::that_nobody_agrees_to();
        base.write(
            "deaddrop.toml",
            "max_tokens = 9000\n[sandbox]\nnetwork = true\nreadable = [\"/srv\"]\n",
        );
        let Some(person) = Person::sits_down(&base, columns) else { return };
        for answer in ["n", "", "perhaps"] {
            person.begins("deaddrop status");
            let screen = person.tmux.wait_for("the question", |screen| screen.ends_with("[y/N]"));
            holds(&flat(&screen), &[QUESTION, "sandbox.network = true (line 3): "]);
            person.tmux.types(answer);
            let told = flat(&person.sees(2));
            holds(
                &told,
                &["error: nothing was done without your consent", "`deaddrop config allow`"],
            );
            // What they have just read is not told again.
            assert_eq!(told.matches("sandbox.network").count(), 1, "{told}");
        }
        person.begins("deaddrop status");
        person.tmux.wait_for("the question", |screen| screen.ends_with("[y/N]"));
        person.tmux.types("y");
        holds(
            &flat(&person.sees(0)),
            &["You will not be asked again", "There are no sessions here yet"],
        );
        assert!(!person.reads("deaddrop status", 0).contains(QUESTION));
        holds(&person.reads("deaddrop config deny", 0), &["Your consent is withdrawn"]);
        holds(
            &person.reads("deaddrop config allow", 0),
            &["sandbox.readable = [\"/srv\"] (line 4): ", "Your consent is recorded for "],
        );
        holds(&person.reads("deaddrop config deny", 0), &["Your consent is withdrawn"]);
    }
}

#[test]
fn what_is_withheld_as_a_secret_is_told() {
    for columns in WIDTHS {
        let base = Project::new();
        // In two halves, so that no scanner takes this file for one that holds it.
        let key = format!("ghp_{}", "x7Kq2mWv9TzR4bNc8YpL1sHd6JfGa3EuQo5i");
        base.write("workspace/README.md", format!("Deploy with token = \"{key}\".\n"));
        let Some(person) = Person::sits_down(&base, columns) else { return };
        let told = person.reads("deaddrop new --no-watch 'Describe the project'", 0);
        holds(&told, &["warning: ", "README.md"]);
        let outbox = told.rsplit(' ').next().unwrap();
        assert!(!base.read(outbox).contains(&key), "{told}");
        assert!(!told.contains(&key), "{told}");
    }
}

#[test]
fn a_clipboard_that_cannot_be_read_is_not_named_as_the_next_step() {
    let base = Project::with_session();
    let Some(person) = Person::sits_down(&base, 80) else { return };
    // tmux takes it, and nothing gives it back.
    let told = person.reads("deaddrop show --copy", 0);
    holds(&told, &["through tmux", "then run `deaddrop next -`"]);
    holds(&person.reads("deaddrop next", 1), &["`deaddrop next -`"]);
}
