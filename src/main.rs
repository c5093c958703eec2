//! The program: a helper for one command, or what the command line says.

fn main() {
    deaddrop::runner::sandbox::dispatch();
}
