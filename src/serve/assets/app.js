// The page: the view, the list of sessions, the running turn, and the connection.

import { doctorView, settingsView } from './about.js';
import { call, listen, takeToken } from './api.js';
import { clearNotices, fail, fill, h, later, oneAtATime, perFrame, tell, when } from './dom.js';
import { newView } from './new.js';
import { sessionView } from './session.js';
import { LISTED, live, quoted, tag } from './steps.js';

const byId = (id) => document.getElementById(id);
const NARROW = matchMedia('(max-width: 719px)');
const kept = new Map();
let [sessions, turn, view, isListening] = [[], null, null, false];
let [shownHash, shownList] = [null, ''];

const app = {
  call,
  partCharacters: 30_000,
  // A reply on its way to another session.
  carried: null,
  go: (hash) => { location.hash = hash; },
  reload: () => reload(),
  /** Waits for an action that begins or continues a turn, then shows and announces the result. */
  async turn(act) {
    const hadFocus = document.activeElement.closest('#view') || document.activeElement === document.body;
    clearNotices();
    document.body.dataset.running = hadFocus ? 'focus' : '';
    let done;
    try {
      done = (await act()) ?? {};
      endTurn();
      await reload();
    } finally {
      delete document.body.dataset.running;
    }
    if (done.recorded) tell(`Recorded. In a terminal, \`deaddrop ops run --resume ${done.session}\` continues.`);
    else if (done.waiting) tell('The turn waits for your decision.');
    else if (done.isComplete) tell(`Done. Session ${done.session} is complete.`);
    else tell('The turn is done. The next outbox is ready.');
    if (hadFocus) {
      byId(done.waiting ? 'question-title' : done.isComplete ? 'results-title' : 'reply-title')?.focus();
      if (!done.waiting) byId('copy')?.focus();
    }
    return done;
  },
};

const reload = oneAtATime(async () => {
  try {
    sessions = await call('status');
    drawSessions();
    await view?.update();
  } catch (error) {
    fail(error);
  }
});
const reloadSoon = later(80, reload);

function drawSessions() {
  // A link that is replaced while it is pressed is not followed.
  const now = JSON.stringify([sessions, location.hash, Math.floor(Date.now() / 60_000)]);
  if (now === shownList) return;
  shownList = now;
  const current = /^#\/s\/(.+)$/.exec(location.hash)?.[1];
  const item = ({ session, task, waiting, isComplete, updatedAt }) => h('li', {}, h('a', { href: `#/s/${session}`, id: `to-${session}`, 'aria-current': session === current && 'page' },
    h('span', { class: 'task' }, task.split('\n')[0] || `Run ${session}`),
    h('span', { class: 'meta' }, waiting ? tag('asks', 'waits for you') : isComplete ? 'complete' : tag('open', 'open'), ' ', h('code', {}, session), ' ', when(updatedAt))));
  fill(byId('sessions'), h('a', { class: 'button primary', href: '#/new', id: 'to-new', 'aria-current': location.hash === '#/new' && 'page' }, 'New session'),
    sessions.length > 0 && h('ul', {}, sessions.map(item)));
  const asking = sessions.filter(({ waiting }) => waiting).length;
  document.title = `${asking ? `(${asking}) ` : ''}deaddrop`;
}

const VIEWS = { '#/new': newView, '#/settings': settingsView, '#/doctor': doctorView };

/** Shows the view of the address. Text that was typed for a session or a task stays. */
async function route() {
  if (takeToken()) return connect();
  if (location.hash === '#main') {
    history.replaceState(null, '', shownHash || '#/');
    return byId('main').focus();
  }
  let hash = location.hash;
  if (VIEWS[hash] === undefined && !hash.startsWith('#/s/')) {
    const next = sessions.find(({ isComplete }) => !isComplete) ?? sessions[0];
    document.body.dataset.view = 'home';
    if (NARROW.matches && next) {
      [view, shownHash] = [null, ''];
      return fill(byId('view'), h('h1', { class: 'hidden' }, 'Sessions'));
    }
    hash = next ? `#/s/${next.session}` : '#/new';
    history.replaceState(null, '', hash);
  }
  document.body.dataset.view = 'one';
  const isMove = shownHash !== null;
  if (shownHash !== hash) clearNotices();
  shownHash = hash;
  const make = VIEWS[hash] ?? ((given) => sessionView(given, hash.slice('#/s/'.length)));
  if (!kept.has(hash)) kept.set(hash, make(app));
  view = kept.get(hash);
  byId('view').replaceChildren(view.element);
  drawSessions();
  await view.update();
  if (isMove && shownHash === hash) {
    byId('main').scrollTo(0, 0);
    view.element.querySelector('h1')?.focus();
  }
  if (app.carried && view.takes?.()) {
    view.reply.take(app.carried).catch(fail);
    app.carried = null;
  }
  return undefined;
}

const running = live(app);

function drawTurn() {
  byId('live').hidden = turn === null;
  if (turn) running.update(turn);
}
const drawTurnSoon = perFrame(drawTurn);

function endTurn() {
  turn = null;
  drawTurn();
}

/** Handles an event of deaddrop. */
function heard(event) {
  const begun = () => {
    turn ??= { reply: event.reply, steps: [], done: 0, output: '', running: null };
    turn.session ??= event.session;
  };
  switch (event.event) {
    case 'hello': case 'missed':
      turn = null;
      if (view) reloadSoon();
      else reload().then(route).catch(fail);
      break;
    case 'begin':
      turn = null;
      begun();
      reloadSoon();
      break;
    case 'start':
      begun();
      Object.assign(turn, { running: event, output: '' });
      break;
    case 'operation':
      begun();
      Object.assign(turn, { steps: [...turn.steps, event].slice(-LISTED), done: turn.done + 1, running: null, output: '' });
      break;
    case 'output':
      if (turn || event.text) begun();
      if (turn) turn.output = event.text;
      break;
    case 'warning':
      tell(event.message);
      break;
    case 'question': case 'end':
      turn = null;
      reloadSoon();
      if (!location.hash.endsWith(`/${event.session}`)) tell(`Session ${event.session}: ${event.event === 'end' && !event.waiting ? 'a turn is done.' : 'your decision is needed.'}`);
      break;
    default:
      reloadSoon();
  }
  drawTurnSoon();
  if (event.event === 'begin' && document.body.dataset.running === 'focus') {
    drawTurn();
    byId('live-title').focus();
  }
}

function connection(state) {
  document.body.dataset.connection = state;
  fill(byId('connection'), state === 'live' ? 'connected' : 'Connection lost. Trying again …');
}

function unauthorized() {
  // Another address cannot take this text over.
  const typed = [...byId('view').querySelectorAll('textarea')].map(({ value }) => value).filter((text) => text.trim());
  document.body.dataset.connection = 'lost';
  fill(byId('connection'), 'not connected');
  fill(byId('sessions'));
  endTurn();
  [view, shownList] = [null, ''];
  clearNotices();
  fill(byId('view'), h('section', { class: 'card', 'aria-labelledby': 'closed-title' }, h('h1', { id: 'closed-title', tabindex: '-1' }, 'This page is not connected'),
    h('p', {}, 'Each start of ', h('code', {}, 'deaddrop serve'), ' has another address. Open the one that it printed last; it ends in ', h('code', {}, '#token=…'), '. You can paste it into the address bar of this tab.'),
    typed.length > 0 && h('p', {}, 'What you typed here, so that you can copy it:'), typed.map((text) => quoted(text, 'What you typed'))));
  byId('closed-title').focus();
}

const isTyping = (target) => target.closest('textarea, input:not([type=checkbox]), select') !== null;

function onKey(event) {
  if (event.key !== 'Enter' || event.isComposing || document.querySelector('dialog[open]')) return;
  const acts = view?.reply?.enter ?? view?.enter;
  const isFree = !isTyping(event.target) && event.target.closest('button, a, summary, label.button') === null;
  if (acts && (event.ctrlKey || event.metaKey || (isFree && view.reply))) {
    event.preventDefault();
    acts();
  }
}

function onPaste(event) {
  const text = event.clipboardData.getData('text/plain');
  const isOwn = event.target.id === 'reply' && event.target.value === '';
  if ((isTyping(event.target) && !isOwn) || !text || !view?.takes?.() || document.querySelector('dialog[open]')) return;
  event.preventDefault();
  view.reply.take(text).catch(fail);
}

function onDrop(event) {
  event.preventDefault();
  document.body.classList.remove('dropping');
  const [file] = event.dataTransfer.files;
  const text = event.dataTransfer.getData('text/plain');
  if (view?.takes?.()) (file ? view.reply.drop(file) : view.reply.take(text)).catch(fail);
}

async function start() {
  takeToken();
  fill(byId('live'), running.parts);
  addEventListener('unauthorized', unauthorized);
  addEventListener('hashchange', () => route().catch(fail));
  NARROW.addEventListener('change', () => view === null && route().catch(fail));
  document.addEventListener('keydown', onKey);
  document.addEventListener('paste', onPaste);
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    document.body.classList.add('dropping');
  });
  document.addEventListener('dragleave', (event) => event.relatedTarget === null && document.body.classList.remove('dropping'));
  document.addEventListener('drop', onDrop);
  await connect();
}

/** Loads everything, then listens for events. */
async function connect() {
  try {
    const [settings] = await Promise.all([call('config'), call('status').then((all) => { sessions = all; })]);
    app.partCharacters = settings.find(({ name }) => name === 'part_characters')?.value ?? app.partCharacters;
    await route();
  } catch (error) {
    fail(error);
  }
  if (isListening) return;
  isListening = true;
  await listen(heard, connection);
  isListening = false;
}

start();
