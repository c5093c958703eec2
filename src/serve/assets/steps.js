// The steps of a reply: planned, done, or waiting for a decision.

import { one } from './api.js';
import { files } from './diff.js';
import { button, count, fill, h, tell } from './dom.js';

const REFUSED = /^(denied|rejected|own-state|path-)/;

/** The outcome of a step, as a class and a word. */
export function mark({ success, code, mark }) {
  if (success) return ['done', 'done'];
  return mark === 'refused' || REFUSED.test(code ?? '') ? ['refused', 'refused'] : ['failed', 'failed'];
}

export const tag = (kind, text) => h('span', { class: `tag ${kind}` }, text);

/** The exact text of a program or a model. A long one can be scrolled, also with the keyboard. */
export const quoted = (text, label) => h('pre', { class: 'quoted', tabindex: '0', role: 'group', 'aria-label': label }, text);

/** The warnings of a step, and its output. */
export function notes({ warnings, output, success, command }) {
  const printed = output && h('details', { class: 'output', open: !success || command === 'MESSAGE' || output.length < 400 },
    h('summary', {}, command === 'MESSAGE' ? 'The message' : 'Output'), quoted(output, 'Output'));
  return [warnings.map(({ code, message }) => h('p', { class: 'warning' }, code === 'asking' ? '' : 'Warning: ', message)), printed];
}

/** Steps that were executed. */
export function results(outcomes) {
  return h('ol', { class: 'steps' }, outcomes.map((outcome) => {
    const [kind, word] = mark(outcome);
    return h('li', {}, h('div', { class: 'step' }, tag(kind, word), h('code', { class: 'command' }, outcome.command),
      h('span', { class: 'summary' }, outcome.summary)), notes(outcome));
  }));
}

const TOUCHES = {
  protected: 'names that otherwise only you can change, for this operation',
  repository: 'the repository, so that git can write to it',
};

/** The question that a session waits for, with everything that a decision needs. */
export function question(app, session) {
  const { waiting } = session;
  const decides = JSON.stringify([session.session, waiting]);
  const reason = h('input', { type: 'text', id: 'deny-reason', placeholder: 'The model reads it' });
  const decide = (name, more) => async () => {
    const { operation, question: digest } = waiting;
    await app.turn(() => one(name, { session: session.session, operation, question: digest, ...more() }));
  };
  const deny = (rest) => decide('deny', () => ({ reason: reason.value || null, rest }));
  const opens = Object.keys(TOUCHES).filter((key) => waiting.opens?.[key]);
  const row = (name, value) => value !== undefined && value !== null && value !== '' && [h('dt', {}, name), h('dd', {}, value)];
  const env = Object.entries(waiting.env ?? {}).map(([name, value]) => `${name}=${value}`).join('\n');
  return h('section', { class: 'card question', 'aria-labelledby': 'question-title' },
    h('h2', { id: 'question-title', tabindex: '-1' }, 'Your decision is needed: ', h('code', {}, waiting.kind)),
    waiting.command !== undefined && quoted(waiting.command, 'The exact command'),
    h('dl', {}, row('Why', waiting.reason), row('Path', waiting.path), row('Real path', waiting.realPath), row('Folder', waiting.cwd),
      row('Variables', env && h('pre', {}, env)), row('Time limit', waiting.timeout && `${waiting.timeout / 1000} s`),
      row('Approval opens', opens.map((key) => TOUCHES[key]).join('; ')), row('Policy', waiting.policy), row('Operation', waiting.operation)),
    waiting.commands && h('ol', { class: 'steps' }, waiting.commands.map((step) => h('li', {},
      h('div', { class: 'step' }, h('code', { class: 'command' }, step.command), h('span', { class: 'summary' }, step.summary)), notes(step)))),
    waiting.files?.length > 0 && files(waiting.files),
    h('div', { class: 'decide' },
      h('p', { class: 'actions' }, button('Yes, do it', decide('approve', () => ({})), { decides, class: 'primary', id: 'approve' }),
        waiting.always && button('Always', decide('approve', () => ({ always: true })), { decides, id: 'always', title: 'Do it, and never ask about exactly this command again' })),
      h('label', { class: 'field' }, 'Why not (optional)', reason),
      h('p', { class: 'actions' }, button('No', deny(false), { decides, class: 'danger', id: 'deny' }),
        button('No to the rest, too', deny(true), { decides, id: 'deny-rest', title: 'Deny everything else of this reply that needs approval' }))));
}

/** How many steps of the running turn are listed. */
export const LISTED = 30;

/** The running turn: its last steps, the output of the running command, and a button to stop it. */
export function live(app) {
  const stop = async () => {
    await app.call('stop');
    tell('Stopping. Steps that have not begun are not executed; the next outbox says so.');
  };
  const [link, told, list] = [h('a', {}), h('span', { class: 'muted' }), h('ol', { class: 'steps' })];
  const written = h('pre', { class: 'quoted tail', id: 'live-output', tabindex: '0', role: 'group', 'aria-label': 'Output of the running command' });
  // A button that is replaced while it is pressed gets no click.
  const parts = [h('header', {}, h('h2', { id: 'live-title', tabindex: '-1' }, 'Running ', link), told, button('Stop', stop, { class: 'danger', id: 'stop' })), list, written];
  const item = (kind, word, command, what) => h('li', {}, h('div', { class: 'step' }, tag(kind, word), h('code', { class: 'command' }, command), h('span', { class: 'summary' }, what)));

  function update({ session, reply, steps, done, running, output }) {
    link.hidden = !session;
    link.href = `#/s/${session}`;
    fill(link, session);
    fill(told, reply, done > 0 && ` · ${count(done, 'step')} done`);
    fill(list, done > steps.length && h('li', { class: 'muted' }, `${count(done - steps.length, 'step')} before these`),
      steps.map((step) => item(...mark(step), step.command, step.summary)), running && item('running', 'runs', running.command, running.what));
    written.hidden = !output;
    fill(written, output);
    written.scrollTop = written.scrollHeight;
  }

  return { parts, update };
}
