//! Runs of a space: begin, list, show, resume after a decision, and cancel.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::spaces::{RestSpace, without_null};
use super::worker::{Ticket, Work};
use super::{ApiCall, ApiError, ApiReply, ListPage};
use crate::clock::Timestamp;
use crate::ipc::Request;
use crate::outbox::{events_so_far, question};
use crate::protocol::operations::{self, Decision, Event, Status, parse_approval};
use crate::protocol::{Digest, Operation, Outcome, Step, StepContent};
use crate::runner::interrupt;
use crate::session::{RunRequest, Session, new_id, run_id, run_stem};
use crate::space::{decision_about, run_events};

const REASON: &str = "the run was cancelled";

/// Begins a run, or finds the run that the same request has begun.
pub(super) fn begin(space: &Arc<RestSpace>, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let steps = steps(&call.text)?;
    let mut work = space.settled();
    work.tidy();
    let (key, body) = (call.key.clone(), call.digest.clone());
    let is_same = |ticket: &&Arc<Ticket>| {
        let Some(request) = ticket.request.as_ref().filter(|it| !it.is_passing) else {
            return false;
        };
        // The SDK repeats a request whose answer did not arrive.
        request.key == key && (key.is_some() || request.body == body && ticket.is_lost())
    };
    let found = work.tickets.iter().find(is_same).cloned();
    if let Some(ticket) = found {
        let sent = ticket.request.as_ref().map(|request| &request.body);
        return if sent == Some(&body) {
            Ok(wait_for_run(space, ticket))
        } else {
            Err(ApiError::other_body())
        };
    }
    if let Some((stem, sent)) = key.as_ref().and_then(|key| asked_before(space, key)) {
        if sent != body {
            return Err(ApiError::other_body());
        }
        if let Ok(run) = load(space, &stem) {
            return Ok(ApiReply::Data(status_of(&run), data_of(space, &run, true)));
        }
    }
    let request = RunRequest {
        space: space.id.clone(),
        key: key.clone(),
        body: body.clone(),
        is_passing: false,
    };
    let (ticket, request) = run_of(space, steps, request)?;
    space.order(&mut work, &ticket, vec![request])?;
    if let Some(key) = key {
        space
            .asked()
            .get_or_insert_default()
            .insert(key.as_str().to_owned(), (ticket.stem.clone(), body));
    }
    drop(work);
    Ok(wait_for_run(space, ticket))
}

/// A ticket for a run with a new id, and the request that starts it.
pub(super) fn run_of(
    space: &RestSpace,
    mut steps: Vec<Step>,
    request: RunRequest,
) -> Result<(Arc<Ticket>, Request), ApiError> {
    let env = space.record().env.clone();
    for step in &mut steps {
        if let StepContent::Operation(Operation::Run(run)) = &mut step.asks {
            for (name, value) in &env {
                run.env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    let policy = Box::new(space.policy()?);
    let mut id = new_id();
    while !space.store.is_free(&id) {
        id = new_id();
    }
    let ticket = Ticket::new(run_stem(&id), Some(request.clone()));
    Ok((ticket, Request::Run { steps, policy, asked: Some((id, request)) }))
}

/// The steps of a message. A malformed operation is a step that fails.
fn steps(text: &str) -> Result<Vec<Step>, ApiError> {
    let received = operations::receive(text).map_err(|faults| ApiError::schema(faults.iter()))?;
    Ok(operations::steps(Ok(received), false))
}

/// The run that was begun with an idempotency key, and the digest of its request body.
fn asked_before(space: &RestSpace, key: &Digest) -> Option<(String, Digest)> {
    let mut asked = space.asked();
    let asked = asked.get_or_insert_with(|| {
        let runs = space.store.runs().unwrap_or_default().into_iter();
        let request = |stem: String| {
            let run = load(space, &stem).ok()?.run?.request?;
            Some((run.key?.as_str().to_owned(), (stem, run.body)))
        };
        runs.filter_map(request).collect::<HashMap<_, _>>()
    });
    asked.get(key.as_str()).cloned()
}

fn wait_for_run(space: &Arc<RestSpace>, ticket: Arc<Ticket>) -> ApiReply {
    let space = Arc::clone(space);
    ApiReply::of(ticket, StatusCode::CREATED, move |run| {
        let run = run?;
        Ok((status_of(&run), data_of(&space, &run, true)))
    })
}

/// 200 for a run that waits for a decision, 201 for a finished one.
fn status_of(run: &Session) -> StatusCode {
    if run.pending.is_some() { StatusCode::OK } else { StatusCode::CREATED }
}

/// Loads a run of a space by its stem.
pub(super) fn load(space: &RestSpace, stem: &str) -> Result<Session, ApiError> {
    let missing = || ApiError::no_run(stem);
    run_id(stem).ok_or_else(missing)?;
    let run = space.store.load_stem(stem).map_err(|_| missing())?;
    let request = run.run.as_ref().and_then(|run| run.request.as_ref());
    let is_its = request.is_some_and(|it| it.space == space.id && !it.is_passing);
    if is_its { Ok(run) } else { Err(missing()) }
}

/// The complete data of a run that is not running at the moment.
fn data_of(space: &RestSpace, run: &Session, is_posted: bool) -> Value {
    let outcomes = run.pending.as_ref().map_or(&run.last_results, |pending| &pending.outcomes);
    let data = data(space, run, &events_so_far(run, outcomes));
    if is_posted { without_null(data) } else { data }
}

fn data(space: &RestSpace, run: &Session, events: &[Event]) -> Value {
    let is_over = run.is_complete;
    let stem = run.stem();
    let is_cancelled = is_over && space.store.cancelled(&stem).is_some();
    let status = match run_events(run).status {
        _ if is_cancelled => "cancelled",
        Status::Completed => "completed",
        Status::AwaitingApproval => "awaiting_approval",
        Status::Error => "error",
    };
    let asked = run.pending.as_deref().and_then(question).map(|event| {
        json!({
            "operationId": event.operation_id,
            "operationType": event.operation_type,
            "reason": event.reason,
            "details": event.details,
        })
    });
    json!({
        "id": stem,
        "spaceId": space.id,
        "protocolVersion": "1.0",
        "status": status,
        "events": events,
        "pendingApproval": asked,
        "startedAt": run.created_at,
        "completedAt": is_over.then_some(run.updated_at),
    })
}

/// The data of a run that is running, or queued.
fn data_so_far(space: &RestSpace, ticket: &Ticket) -> Value {
    let (began, run, outcomes): (Timestamp, Option<Session>, Vec<Outcome>) = ticket.so_far();
    json!({
        "id": ticket.stem,
        "spaceId": space.id,
        "protocolVersion": "1.0",
        "status": "running",
        "events": run.map_or_else(Vec::new, |run| events_so_far(&run, &outcomes)),
        "pendingApproval": null,
        "startedAt": began,
        "completedAt": null,
    })
}

pub(super) fn list(space: &Arc<RestSpace>, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let page = ListPage::of(call)?;
    let work = space.settled();
    let is_passing = |ticket: &Ticket| ticket.request.as_ref().is_some_and(|it| it.is_passing);
    let running = work.tickets.iter().filter(|ticket| !ticket.is_done() && !is_passing(ticket));
    let mut found: Vec<_> = running
        .map(|ticket| (Reverse((ticket.so_far().0, true, None)), data_so_far(space, ticket)))
        .collect();
    let stems = space.store.runs().map_err(|e| ApiError::failed(&e))?;
    for stem in stems.into_iter().filter(|stem| work.running(stem).is_none()) {
        let path = space.config.sessions.join(format!("{stem}.json"));
        let written = fs::metadata(path).and_then(|found| found.modified()).ok();
        let Ok(run) = load(space, &stem) else { continue };
        found.push((Reverse((run.created_at, false, written)), data(space, &run, &[])));
    }
    drop(work);
    found.sort_by_key(|(newest, _)| *newest);
    let status = call.query("status");
    let found = found.into_iter().filter_map(|(_, mut run)| {
        run["events"].take();
        status.is_none_or(|status| run["status"] == status).then(|| without_null(run))
    });
    Ok(page.reply(found.collect()))
}

pub(super) fn show(space: &Arc<RestSpace>, stem: &str) -> Result<ApiReply, ApiError> {
    let running = space.settled().running(stem).cloned();
    match running {
        Some(ticket) => Ok(ApiReply::ok(data_so_far(space, &ticket))),
        None => Ok(ApiReply::ok(data_of(space, &load(space, stem)?, false))),
    }
}

/// Decides about the operation that a run waits for, and continues the run.
pub(super) fn resume(
    space: &Arc<RestSpace>,
    stem: &str,
    call: &ApiCall<'_>,
) -> Result<ApiReply, ApiError> {
    let approval = parse_approval(&call.text).map_err(|faults| ApiError::schema(faults.iter()))?;
    let missing = || ApiError::invalid("approval.operationId", "it is missing");
    let operation = approval.operation_id.ok_or_else(missing)?;
    let approves = approval.decision == Decision::Approved;
    let mut work = space.settled();
    if work.running(stem).is_some() {
        return Err(ApiError::not_resumed(format!(
            "run {stem} is already running; GET shows its progress"
        )));
    }
    let run = load(space, stem)?;
    let asked = run.pending.as_ref().filter(|it| it.question.id == operation);
    let requests = match asked.map(|pending| pending.decision.as_ref()) {
        Some(None) if approves && !space.is_own() => {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "FORBIDDEN",
                format!(
                    "this space is on the project's own workspace, where only the person approves: on the page, or with `deaddrop approve {operation} --session {stem}`; then resume again"
                ),
            ));
        }
        Some(None) => {
            let reason = approval.reason.as_deref();
            let decision = decision_about(&run, &operation, approval.decision, reason)
                .map_err(|e| ApiError::not_resumed(e.to_string()))?;
            let decide = Request::Decide { stem: stem.to_owned(), decision: Box::new(decision) };
            vec![decide, Request::ResumeRun { stem: stem.to_owned() }]
        }
        // The person has decided, or the last process was stopped before it continued the run.
        Some(Some(decided)) if decided.approved == approves || !space.is_own() => {
            vec![Request::ResumeRun { stem: stem.to_owned() }]
        }
        Some(Some(_)) => {
            return Err(ApiError::not_resumed(format!(
                "'{operation}' was already decided differently"
            )));
        }
        None => {
            // This may repeat a decision whose answer was lost.
            let last = run.run.as_ref().and_then(|run| run.decided.last());
            let is_it = last.is_some_and(|decided| {
                decided.approved == approves
                    && decided.event.operation_id.as_ref() == Some(&operation)
            });
            return if is_it {
                Ok(ApiReply::ok(data(space, &run, &run_events(&run).events)))
            } else {
                Err(ApiError::not_resumed(format!("run {stem} does not wait for '{operation}'")))
            };
        }
    };
    let ticket = Ticket::new(stem.to_owned(), None);
    space.order(&mut work, &ticket, requests)?;
    drop(work);
    let space = Arc::clone(space);
    Ok(ApiReply::of(ticket, StatusCode::OK, move |run| {
        let run = run?;
        Ok((StatusCode::OK, data(&space, &run, &run_events(&run).events)))
    }))
}

/// Cancels a run. The cancellation is on disk before anything is stopped, so that a process that continues the run sees
/// it.
pub(super) fn cancel(
    space: &Arc<RestSpace>,
    stem: &str,
    call: &ApiCall<'_>,
) -> Result<ApiReply, ApiError> {
    if !call.text.is_empty() {
        call.body::<Map<String, Value>>()?;
    }
    let now = Timestamp::now();
    let mut work = space.settled();
    let cancelled = json!({ "id": stem, "status": "cancelled", "cancelledAt": now });
    let is_passing = |ticket: &Arc<Ticket>| ticket.request.as_ref().is_some_and(|it| it.is_passing);
    if work.running(stem).is_some_and(|ticket| !is_passing(ticket)) {
        space.store.cancel(stem, now).map_err(|e| ApiError::failed(&e))?;
        interrupt::check();
        return Ok(ApiReply::ok(cancelled));
    }
    let run = load(space, stem)?;
    match space.store.cancelled(stem) {
        Some(at) if run.is_complete => {
            return Ok(ApiReply::ok(
                json!({ "id": stem, "status": "cancelled", "cancelledAt": at }),
            ));
        }
        _ if run.is_complete => {
            return Err(ApiError::new(
                StatusCode::CONFLICT,
                "RUN_ALREADY_COMPLETED",
                format!("run {stem} has already ended"),
            ));
        }
        _ => {}
    }
    let ticket = end_waiting(space, &mut work, &run, now)?;
    drop(work);
    Ok(ApiReply::of(ticket, StatusCode::OK, |run| run.map(|_| (StatusCode::OK, cancelled))))
}

/// Ends a run that waits for a decision.
fn end_waiting(
    space: &Arc<RestSpace>,
    work: &mut Work,
    run: &Session,
    now: Timestamp,
) -> Result<Arc<Ticket>, ApiError> {
    let stem = run.stem();
    let mut requests = vec![Request::ResumeRun { stem: stem.clone() }];
    if let Some(question) = run.question() {
        let denied = decision_about(run, &question.id, Decision::Denied, Some(REASON));
        let decision = Box::new(denied.map_err(|e| ApiError::failed(&e))?);
        requests.insert(0, Request::Decide { stem: stem.clone(), decision });
    }
    let ticket = Ticket::new(stem.clone(), None);
    // The worker cannot begin while this thread holds the lock on `work`.
    space.order(work, &ticket, requests)?;
    space.store.cancel(&stem, now).map_err(|e| ApiError::failed(&e))?;
    Ok(ticket)
}

/// Cancels all runs of a space: running, queued, and waiting for a decision.
pub(super) fn cancel_all(space: &Arc<RestSpace>) -> Result<(), ApiError> {
    let now = Timestamp::now();
    let mut work = space.settled();
    let stems = space.store.runs().map_err(|e| ApiError::failed(&e))?;
    let is_idle = |stem: &String| work.running(stem).is_none();
    let runs = stems.iter().filter(|stem| is_idle(stem)).filter_map(|stem| load(space, stem).ok());
    let waiting: Vec<Session> = runs.filter(|run| !run.is_complete).collect();
    let going = work.tickets.iter().filter(|ticket| !ticket.is_done()).map(|it| it.stem.clone());
    for stem in going.chain(waiting.iter().map(Session::stem)) {
        space.store.cancel(&stem, now).map_err(|e| ApiError::failed(&e))?;
    }
    interrupt::check();
    for run in waiting {
        // If the queue is full, the run ends when somebody decides.
        let _ = end_waiting(space, &mut work, &run, now);
    }
    Ok(())
}
