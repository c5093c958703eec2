// One session: its newest outbox, the reply, the results of the last reply, and the earlier turns.

import { call, one } from './api.js';
import { files } from './diff.js';
import { ask, button, count, fail, fill, h, oneAtATime, tell, when } from './dom.js';
import { replyCard } from './reply.js';
import { question, results, tag } from './steps.js';

/** Copies a text. A page that is not local cannot use the clipboard, but can copy a selection. */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h('textarea', { class: 'hidden', value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (!done) throw new Error('The browser does not let this page copy. Open the text below, and copy it by hand.');
  }
  tell(`${what} is copied. Paste it into the chat.`);
}

/** The card of the newest outbox, loaded again when it has changed. */
function outboxCard(app) {
  const body = h('div', {});
  const card = h('section', { class: 'card outbox', 'aria-labelledby': 'outbox-title' }, body);
  const brief = h('input', { type: 'checkbox', id: 'brief', onchange: () => load() });
  let [session, key] = [null, ''];

  async function load() {
    const asked = key;
    const wanted = { session: session.session, brief: brief.checked };
    try {
      const whole = await one('show', wanted);
      const parts = [];
      for (let of = whole.text.length > app.partCharacters ? 2 : 0; parts.length < of; ) {
        const part = await one('show', { ...wanted, part: `${parts.length + 1}` });
        of = part.of;
        parts.push(part.text);
      }
      if (asked === key) draw(whole, parts);
    } catch (error) {
      if (asked === key) fill(body, h('h2', { id: 'outbox-title' }, 'Outbox'), h('p', { class: 'notice error' }, error.message));
    }
  }

  function draw({ sequence, path, tokens, text }, parts) {
    const name = `Outbox ${sequence}`;
    const copier = (label, given, what, more) => button(label, async (pressed) => {
      await copy(given, what);
      fill(pressed, '✓ Copied');
      pressed.classList.remove('primary');
    }, more);
    fill(body, h('header', {}, h('h2', { id: 'outbox-title' }, name), h('span', { class: 'muted' }, `≈ ${tokens.toLocaleString('en')} tokens`),
      copier('Copy', text, name, { class: 'primary', id: 'copy' })),
    h('p', { class: 'muted' }, 'Paste it into any chat, and bring the reply back here.'),
    parts.length > 1 && h('div', { class: 'parts' }, h('p', {}, 'For a chat that takes only short messages:'),
      h('p', { class: 'actions' }, parts.map((part, n) => copier(`Part ${n + 1} of ${parts.length}`, part, `Part ${n + 1}`, { id: `part-${n + 1}` })))),
    sequence > 1 && h('label', { class: 'check' }, brief, 'Brief: without what the chat has already seen'),
    h('details', {}, h('summary', {}, 'Show the text'), h('p', { class: 'muted' }, path), h('pre', { class: 'quoted', tabindex: '0', role: 'group', 'aria-label': name }, text)));
  }

  return {
    card,
    update(now) {
      const changed = `${now.session} ${now.sequence} ${now.updatedAt}`;
      session = now;
      if (changed === key) return;
      key = changed;
      load();
    },
  };
}

/** The files that turns changed. */
async function changes(session, turns) {
  const all = await call('diff', { session, turns: `${turns}` });
  const word = ({ before, after }) => (before === null ? 'created' : after === null ? 'deleted' : 'changed');
  if (all.length === 0) return h('p', { class: 'muted' }, 'It changed no files, or only files that are not kept.');
  return files(all.map((one) => ({ path: one.path, change: word(one), diff: one.diff })));
}

function turnRow(session, entry) {
  const { sequence, at, reply, operations, ran, failed, changed, isUndone, undid = [], redid, isComplete, waiting } = entry;
  const work = redid ? `took back undo ${redid}` : undid.length > 0 ? `undid turn ${undid.join(', ')}`
    : `${count(operations, 'operation')}${ran ? ` (${count(ran, 'command')})` : ''}`;
  const body = h('div', {});
  const load = async (event) => {
    if (!event.target.open || body.childElementCount > 0) return;
    try {
      fill(body, await changes(session, sequence));
    } catch (error) {
      fill(body, h('p', { class: 'muted' }, error.message));
    }
  };
  return h('li', {}, h('details', { class: 'turn', ontoggle: load },
    h('summary', {}, h('b', {}, `Turn ${sequence}`), h('span', {}, work), failed > 0 && tag('failed', `${failed} failed`), isUndone && tag('', 'undone'),
      isComplete && tag('done', 'done'), waiting && tag('asks', 'waits for you'),
      h('span', { class: 'muted' }, changed !== null && `${count(changed, 'file')} · `, when(at))),
    h('p', { class: 'muted' }, 'Reply: ', reply), body));
}

/** The sandbox of the commands: its first sentence, and the rest on request. */
function confined(sandbox) {
  const [first, ...rest] = sandbox.split(/(?<=[.;]) /);
  if (rest.length === 0) return h('span', {}, `sandbox: ${first}`);
  return h('details', {}, h('summary', {}, `sandbox: ${first.replace(/[.;]$/, '')}`), h('p', {}, rest.join(' ')));
}

const area = (id, label, more) => h('label', { class: 'field' }, label, h('textarea', { id, rows: '4', ...more }));
const line = (id, label) => h('label', { class: 'field' }, label, h('input', { type: 'text', id }));

/** The view of a session. `update` shows it as it is now. */
export function sessionView(app, id) {
  const [head, top, last, past] = [h('header', { class: 'head' }), h('div', {}), h('div', {}), h('div', {})];
  const outbox = outboxCard(app);
  const reply = replyCard(app, id);
  const pair = h('div', { class: 'pair' }, outbox.card, reply.card);
  const element = h('div', { class: 'session' }, head, top, pair, reply.preview, h('div', { class: 'pair' }, last, past));
  let [session, drawn] = [null, ''];

  function say() {
    ask({ title: 'Say something to the model', label: 'Add', body: area('words', 'Your words, added to the end of the newest outbox'),
      act: async (form) => {
        const text = form.querySelector('#words').value.trim();
        if (!text) throw new Error('Write something first.');
        const said = await one('say', { session: id, text });
        tell(said.saysIt ? 'Your words are in the newest outbox. If you have already pasted it, copy it again.' : 'Your words will be in the next outbox.');
        await app.reload();
      } });
  }

  function goOn() {
    ask({ title: 'Go on with this session', label: 'Go on', body: area('words', 'What the model should do next'),
      act: async (form) => {
        const text = form.querySelector('#words').value.trim();
        if (!text) throw new Error('Write something first.');
        await one('reopen', { session: id, text });
        tell('The session is open again. The next outbox is ready.');
        await app.reload();
      } });
  }

  /** Undo and redo are alike: a confirmation, and with force if something has changed since. */
  function back(name, title, label, told) {
    let force = false;
    const body = [h('p', {}, told), name === 'undo' && line('reason', 'Why (optional; the model reads it)')];
    const failed = (error) => error.code === 'undo-conflict' && h('label', { class: 'check' },
      h('input', { type: 'checkbox', onchange: (event) => { force = event.target.checked; } }), 'Overwrite these later changes all the same');
    ask({ title, label, body, danger: true, failed, act: async (form) => {
      const reason = form.querySelector('#reason')?.value || undefined;
      await one(name, { session: id, force, reason });
      tell(`${label}: done. The next outbox tells the model.`);
      await app.reload();
    } });
  }

  function close() {
    const remove = h('input', { type: 'checkbox', id: 'remove' });
    ask({ title: 'Close this session?', label: 'Close the session', danger: true,
      body: [h('p', {}, 'It takes no more replies. The files of the workspace stay as they are.'),
        h('label', { class: 'check' }, remove, 'Also remove its outboxes, its log, and what undo needs')],
      act: async () => {
        await one('close', { session: id, delete: remove.checked });
        tell(`Session ${id} is closed.`);
        if (remove.checked) app.go('#/');
        await app.reload();
      } });
  }

  function drawHead(log) {
    const { task, isComplete, sequence, updatedAt, waiting, sandbox, toSay = [], added = [] } = session;
    const [first, ...rest] = (task || id).split('\n');
    const isRun = session.outbox === null;
    const state = waiting ? tag('asks', 'waits for you') : isComplete ? tag('done', 'complete') : tag('open', 'open');
    const undoable = log.some((entry) => entry.changed && !entry.isUndone && !entry.undid?.length);
    const redoable = log.at(-1)?.undid?.length > 0;
    fill(head, h('div', {}, h('h1', { tabindex: '-1' }, first),
      rest.join('').trim() && h('details', {}, h('summary', {}, 'The whole task'), h('pre', {}, task)),
      h('p', { class: 'meta' }, state, h('span', {}, h('code', {}, id)), !isRun && h('span', {}, `outbox ${sequence}`), h('span', {}, when(updatedAt)), sandbox && confined(sandbox))),
    !isRun && h('p', { class: 'actions' }, isComplete ? button('Go on …', goOn, { id: 'go-on' }) : button('Say …', say, { id: 'say' }),
      undoable && !waiting && button('Undo …', () => back('undo', 'Undo the last turn?', 'Undo', 'Files, links and folders become what they were before it. Commits and other effects of commands stay.'), { id: 'undo' }),
      redoable && !waiting && button('Redo …', () => back('redo', 'Take the undo back?', 'Redo', 'Files become what they were before the undo.'), { id: 'redo' }),
      !isComplete && !waiting && button('Close …', close, { id: 'close' })));
    const words = [...added, ...toSay].map((text) => h('li', {}, text));
    fill(top, waiting && question(app, session), isComplete && h('section', { class: 'card', 'aria-labelledby': 'summary-title' },
      h('h2', { id: 'summary-title' }, 'Done'), h('p', { class: 'prose' }, session.summary ?? 'The session is closed.')),
    words.length > 0 && h('section', { class: 'card', 'aria-labelledby': 'words-title' }, h('h2', { id: 'words-title' }, 'Your words'), h('ul', {}, words)),
    session.held?.length > 0 && h('p', { class: 'notice warn' }, `Replies are held in the inbox: ${session.held.join(', ')}. A note beside each says why.`));
  }

  function draw(log) {
    drawHead(log);
    pair.hidden = reply.preview.hidden = session.isComplete || Boolean(session.waiting) || session.outbox === null;
    if (!pair.hidden) outbox.update(session);
    const turn = log.at(-1);
    const shown = h('div', {});
    const show = async (pressed) => {
      fill(shown, await changes(id, turn.sequence));
      pressed.remove();
    };
    fill(last, session.results.length > 0 && h('section', { class: 'card', 'aria-labelledby': 'results-title' },
      h('header', {}, h('h2', { id: 'results-title', tabindex: '-1' }, session.waiting ? 'Done so far' : 'What the last reply did'),
        turn?.changed > 0 && !session.waiting && button(`Show what changed (${count(turn.changed, 'file')})`, show, { id: 'changed' })),
      results(session.results), shown));
    fill(past, log.length > 0 && h('section', { class: 'card history', 'aria-labelledby': 'history-title' },
      h('h2', { id: 'history-title' }, 'History'), h('ol', {}, log.toReversed().map((entry) => turnRow(id, entry)))));
  }

  const update = oneAtATime(async () => {
    try {
      const [now, log] = await Promise.all([one('status', { session: id }), call('log', { session: id }).catch(() => [])]);
      const all = JSON.stringify([now, log]);
      // What is open or typed here stays if nothing has changed.
      if (all === drawn) return;
      if (session) reply.recheck();
      [session, drawn] = [now, all];
      draw(log);
    } catch (error) {
      if (error.code !== 'no-session') fail(error);
      else fill(head, h('div', {}, h('h1', { tabindex: '-1' }, 'There is no such session'), h('p', {}, h('a', { href: '#/new' }, 'Begin one'))));
    }
  });

  return { element, update, reply, takes: () => !pair.hidden };
}
