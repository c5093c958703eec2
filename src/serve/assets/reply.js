// The box for the reply, and what the reply would do.

import { one } from './api.js';
import { files } from './diff.js';
import { count, button, fail, fill, h, later, tell } from './dom.js';
import { mark, notes, quoted, tag } from './steps.js';

const LONGEST = 8 << 20;
const CHANGED = 'The files have changed since you looked. This is what the reply would do now.';
// The option that executes a reply held for this reason.
const ANYWAY = { 'duplicate-reply': 'again', 'outdated-reply': 'force', 'unknown-outbox': 'force', 'wrong-key': 'force', 'unreadable-reply': 'force' };

/** The card for the reply to a session. The text in it stays while other sessions are shown. */
export function replyCard(app, session) {
  // Only what was shown is executed: `seen` is the text and the state of the files in the preview, and `leftOutThen` its
  // selection of steps.
  const state = { checked: null, seen: null, leftOut: new Map(), leftOutThen: '', anyway: false, asked: 0 };
  const box = h('textarea', { id: 'reply', rows: '7', spellcheck: 'false', autocomplete: 'off', placeholder: 'Paste the reply anywhere on this page, or drop a file', oninput: () => changed() });
  const preview = h('div', { id: 'preview' });
  const say = h('p', { class: 'hidden', role: 'status' });
  const choose = h('input', { type: 'file', id: 'file', class: 'hidden', onchange: () => drop(choose.files[0]) });
  const card = h('section', { class: 'card reply', 'aria-labelledby': 'reply-title' },
    h('header', {}, h('h2', { id: 'reply-title' }, 'Reply'), h('label', { class: 'button', for: 'file' }, 'Open a file'), choose),
    h('label', { class: 'hidden', for: 'reply' }, 'The reply of the model'), box, say);

  const soon = later(300, check);
  const recheck = later(150, check);

  function changed() {
    state.checked = null;
    state.asked += 1;
    state.leftOut.clear();
    state.anyway = false;
    say.textContent = '';
    if (box.value.trim() === '') {
      state.seen = null;
      return fill(preview);
    }
    fill(preview, h('section', { class: 'card' }, h('p', { class: 'muted' }, 'Checking …')));
    return soon();
  }

  function leaveOut() {
    return [...state.leftOut].map(([n, reason]) => (reason.trim() ? `${n}=${reason.trim()}` : `${n}`));
  }

  const numbersLeftOut = () => [...state.leftOut.keys()].toSorted((a, b) => a - b).join();

  async function check() {
    const asked = (state.asked += 1);
    const [text, numbers] = [box.value, numbersLeftOut()];
    if (text.trim() === '') return;
    try {
      const checked = await one('check', { session, text, leaveOut: leaveOut() });
      if (asked !== state.asked) return;
      if (state.seen?.text !== text) state.seen = { text, files: checked.state };
      Object.assign(state, { checked, leftOutThen: numbers });
      show();
    } catch (error) {
      if (asked !== state.asked) return;
      state.checked = null;
      fill(preview, h('section', { class: 'card' }, h('p', { class: 'notice error' }, error.message)));
    }
  }

  function show() {
    const { checked } = state;
    const { commands } = checked;
    const asks = commands.filter((step) => step.warnings.some(({ code }) => code === 'asking')).length;
    const runs = commands.length - state.leftOut.size;
    const bad = commands.filter((step, n) => !step.success && step.code && !state.leftOut.has(n + 1)).length;
    const paths = new Set(checked.files?.map(({ path }) => path)).size;
    const told = [count(commands.length, 'step'), bad > 0 && `${bad} with errors`, paths > 0 && count(paths, 'file'), asks > 0 && `asks you ${asks === 1 ? 'once' : `${asks} times`}`];
    say.textContent = `${hasChanged() ? CHANGED : 'Checked:'} ${told.filter(Boolean).join(', ')}`;
    const decides = JSON.stringify([session, checked, hasChanged()]);
    const looked = () => {
      state.seen.files = checked.state;
      show();
      document.getElementById('preview-title').focus();
    };
    const way = checked.held && ANYWAY[checked.heldCode];
    const anyway = h('input', { type: 'checkbox', id: 'anyway', checked: state.anyway, onchange: () => { state.anyway = anyway.checked; show(); } });
    const [, other] = (checked.heldCode === 'other-session' && /\[REPLY [^\]]*session="([\w-]+)"/.exec(box.value)) || [];
    const move = () => {
      app.carried = box.value;
      clear();
      app.go(`#/s/${other}`);
    };
    fill(preview, h('section', { class: 'card preview', 'aria-labelledby': 'preview-title' },
      h('header', {}, h('h2', { id: 'preview-title', tabindex: '-1' }, 'What this reply would do'),
        h('span', { class: 'muted' }, told.filter(Boolean).join(' · ')),
        runs > 0 && button(state.leftOut.size ? `Run ${runs} of ${commands.length} steps` : `Run ${count(runs, 'step')}`, run,
          { class: 'primary', id: 'run', title: 'Enter, or Ctrl+Enter in the box', ...(ready() ? { decides } : { 'aria-disabled': 'true' }) })),
      hasChanged() && h('div', { class: 'notice warn' }, h('p', {}, CHANGED), h('p', {}, button('I have looked', looked, { decides, id: 'looked' }))),
      checked.held && h('div', { class: 'notice warn' }, h('p', {}, `Held: ${checked.held.replace(/; `apply --\w+` executes it$/, '')}`),
        other && h('p', {}, button(`Move it to session ${other}`, move)),
        way && h('label', { class: 'check' }, anyway, 'Execute it anyway')),
      checked.endsEarly && h('p', { class: 'notice warn' }, 'The reply ends within a block. It was probably cut off: copy all of it.'),
      checked.withheld.map((sentence) => h('p', { class: 'notice warn' }, `Would be ${sentence}`)),
      h('div', { class: 'both' }, h('ol', { class: 'steps choose', 'aria-label': 'Steps' }, commands.map((step, n) => choice(step, n + 1))),
        checked.files === null ? h('p', { class: 'muted' }, 'The files are on another machine and cannot be shown in advance.') : files(checked.files))));
  }

  function choice(step, n) {
    const isOut = state.leftOut.has(n);
    const kept = h('input', { type: 'checkbox', id: `step-${n}`, checked: !isOut, onchange: () => {
      if (kept.checked) state.leftOut.delete(n);
      else state.leftOut.set(n, '');
      show();
      recheck();
    } });
    const reason = isOut && h('input', { type: 'text', id: `why-${n}`, value: state.leftOut.get(n), placeholder: 'Why (optional; the model reads it)', 'aria-label': `Why step ${n} is left out`,
      oninput: (event) => state.leftOut.set(n, event.target.value) });
    const asks = step.warnings.some(({ code }) => code === 'asking');
    const isBad = !step.success && step.code && !isOut;
    return h('li', { class: isOut ? 'out' : '' },
      h('label', { class: 'step' }, kept, h('code', { class: 'command' }, step.command), h('span', { class: 'summary' }, isOut ? 'left out' : isBad ? null : step.script ? 'would run' : step.summary),
        isBad && tag(mark(step)[0], 'would fail'), asks && !isOut && tag('asks', 'asks you')),
      isBad && h('p', { class: 'bad' }, step.summary), reason, !isOut && step.script && quoted(step.script, `The command of step ${n}`), !isOut && notes(step));
  }

  const hasChanged = () => state.checked.state !== state.seen.files;
  const ready = () => !hasChanged() && state.leftOutThen === numbersLeftOut() && (!state.checked.held || (state.anyway && ANYWAY[state.checked.heldCode]));

  async function run() {
    const way = state.checked.held && ANYWAY[state.checked.heldCode];
    const body = { session, text: box.value, state: state.seen.files, leaveOut: leaveOut(), again: way === 'again', force: way === 'force' };
    try {
      const done = await app.turn(() => one('apply', body));
      if (done && box.value === body.text) clear();
    } catch (error) {
      if (error.code !== 'changed-since-check') throw error;
      tell('The files have changed since the reply was checked. Nothing was executed; look again.');
      await check();
    }
  }

  function clear() {
    box.value = '';
    changed();
  }

  /** Takes a reply that was pasted or dropped. */
  async function take(text) {
    box.value = text;
    changed();
    await check();
    document.getElementById('preview-title')?.focus();
  }

  async function drop(file) {
    if (!file) return;
    if (file.size > LONGEST) fail(new Error(`${file.name} is larger than 8 MiB, which is too large for a reply.`));
    else await take(await file.text());
  }

  const enter = () => document.getElementById('run')?.click();
  return { card, preview, take, drop, enter, recheck: () => box.value && recheck() };
}
