//! Parsing of replies: an ordinary one, and ones made to be slow.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use deaddrop::protocol::tags;
use divan::counter::BytesCount;

const MIB: usize = 1 << 20;

fn main() {
    divan::main();
}

/// Prose and blocks as a model sends them, `size` bytes or a little more.
fn ordinary(size: usize) -> String {
    let mut reply = String::with_capacity(size + 4096);
    let mut n = 0;
    while reply.len() < size {
        n += 1;
        reply.push_str("Here is the next change. It moves the parser into its own module.\n\n");
        match n % 5 {
            0 => reply.push_str(&format!("[READ_FILE path=\"src/file{n}.rs\"]\n")),
            1 => reply.push_str("[RUN_COMMAND]\ncargo test -- --nocapture\n[/RUN_COMMAND]\n"),
            _ => {
                reply.push_str(&format!("[CREATE_FILE path=\"src/dir/file{n}.rs\"]\n"));
                for line in 0..40 + n % 40 {
                    reply.push_str(
                        "    let value = compute(input, index + 1).unwrap_or_default();\n",
                    );
                    if line % 7 == 0 {
                        reply.push_str("    [0, 1, 2, 3, 4],\n\n");
                    }
                }
                reply.push_str("[/CREATE_FILE]\n");
            }
        }
    }
    reply
}

#[divan::bench(args = [1, 8, 64])]
fn blocks(bencher: divan::Bencher, mib: usize) {
    let reply = ordinary(mib * MIB);
    bencher.counter(BytesCount::new(reply.len())).bench(|| tags::parse(divan::black_box(&reply)));
}

#[divan::bench(args = [1, 8, 64])]
fn prose(bencher: divan::Bencher, mib: usize) {
    let line = "I'll now run the build and look at the result, then decide what to do.\n";
    let reply = line.repeat(mib * MIB / line.len());
    bencher.counter(BytesCount::new(reply.len())).bench(|| tags::parse(divan::black_box(&reply)));
}

#[divan::bench(args = [1, 8, 64])]
fn closing_tags_on_one_line(bencher: divan::Bencher, mib: usize) {
    let reply = format!("[CREATE_FILE path=\"a\"]\n{}", "x[/CREATE_FILE] ".repeat(mib * MIB / 16));
    bencher.counter(BytesCount::new(reply.len())).bench(|| tags::parse(divan::black_box(&reply)));
}

#[divan::bench(args = [1, 8, 64])]
fn openings_never_closed(bencher: divan::Bencher, mib: usize) {
    let reply = "[CREATE_FILE path=\"a\"]\n".repeat(mib * MIB / 23);
    bencher.counter(BytesCount::new(reply.len())).bench(|| tags::parse(divan::black_box(&reply)));
}
