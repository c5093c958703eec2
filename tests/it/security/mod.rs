//! Attacks on the walls between a workspace and the person, one file for each rule.

mod pasting;
mod programs;
mod reasoning;
mod repositories;
mod secrets;
mod set_id;
mod state;
mod terminal;
mod views;
