//! A program that hands a long text over in parts, and the first time slowly.

use std::thread;
use std::time::Duration;

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt, CreateWindowAux, EventMask, PropMode,
    Property, SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::Desktop;
use crate::support::Project;

/// Longer than whoever asks waits for a part, by far.
const SLOW: Duration = Duration::from_millis(200);

/// Owns the clipboard until the server ends; of the readings the first is slow. Gives how many there were.
fn serve(
    display: &str,
    text: &str,
    ready: impl FnOnce(),
) -> Result<usize, Box<dyn std::error::Error>> {
    let (conn, screen) = RustConnection::connect(Some(display))?;
    let root = conn.setup().roots[screen].root;
    let atom = |name: &str| -> Result<u32, Box<dyn std::error::Error>> {
        Ok(conn.intern_atom(false, name.as_bytes())?.reply()?.atom)
    };
    let (clipboard, utf8, incr) = (atom("CLIPBOARD")?, atom("UTF8_STRING")?, atom("INCR")?);
    let own = conn.generate_id()?;
    let none = CreateWindowAux::new();
    conn.create_window(0, own, root, 0, 0, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &none)?;
    conn.set_selection_owner(own, clipboard, x11rb::CURRENT_TIME)?.check()?;
    ready();
    let mut readings = 0;
    let mut parts = [].chunks(1);
    // Until the server is gone.
    while let Ok(event) = conn.wait_for_event() {
        match event {
            Event::SelectionRequest(asked) => {
                let is_text = asked.target == utf8;
                if is_text {
                    readings += 1;
                    parts = text.as_bytes().chunks(text.len() / 4 + 1);
                    let told =
                        ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
                    conn.change_window_attributes(asked.requestor, &told)?;
                    let length = u32::try_from(text.len())?;
                    conn.change_property32(
                        PropMode::REPLACE,
                        asked.requestor,
                        asked.property,
                        incr,
                        &[length],
                    )?;
                }
                let answer = SelectionNotifyEvent {
                    response_type: SELECTION_NOTIFY_EVENT,
                    sequence: 0,
                    time: asked.time,
                    requestor: asked.requestor,
                    selection: asked.selection,
                    target: asked.target,
                    property: if is_text { asked.property } else { AtomEnum::NONE.into() },
                };
                conn.send_event(false, asked.requestor, EventMask::NO_EVENT, answer)?;
            }
            Event::PropertyNotify(gone) if gone.state == Property::DELETE => {
                if readings == 1 {
                    thread::sleep(SLOW);
                }
                let part = parts.next().unwrap_or_default();
                conn.change_property8(PropMode::REPLACE, gone.window, gone.atom, utf8, part)?;
            }
            _ => {}
        }
        conn.flush()?;
    }
    Ok(readings)
}

#[test]
fn a_text_whose_parts_come_slowly_is_not_taken_for_none() {
    let Some(mut desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let text = format!("[CREATE_FILE path=\"a.txt\"]\n{}[/CREATE_FILE]\n", "a line\n".repeat(9));
    let display = desktop.display.clone();
    let (sender, ready) = std::sync::mpsc::channel();
    let owner = thread::spawn(move || {
        serve(&display, &text, || sender.send(()).unwrap()).map_err(|e| e.to_string())
    });
    ready.recv().unwrap();
    let run = desktop.run(&base, &["apply", "--clipboard"]).ok();
    assert!(run.stderr.contains("the clipboard (x11)"), "{run:?}");
    assert_eq!(base.read("workspace/a.txt"), "a line\n".repeat(9));
    desktop.end();
    // A busy machine may be slow again.
    assert!(owner.join().unwrap().is_ok_and(|readings| readings > 1));
}
