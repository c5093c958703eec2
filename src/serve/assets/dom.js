// The only place where elements are created. Text is inserted as text, never as markup, and invisible characters in it are
// shown as marks.

// The same as in `visible` of deaddrop: controls, characters that reorder text, and invisible ones.
const HAZARD = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// How long a note stays. Errors stay until they are dismissed.
const NOTE = 8_000;
// How long something is shown before it can be decided on.
const LOOK = 700;

/** An element with attributes (functions are listeners) and children (texts, elements, lists; null is skipped). */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') {
      element.addEventListener(key.replace(/^on/, ''), value);
    } else if (key === 'value' || key === 'checked' || key === 'open') {
      element[key] = value;
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, value === true ? '' : value);
    }
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .flatMap((child) => (child instanceof Node ? child : visible(String(child))));
}

/** A text as nodes, with a mark for each invisible character. */
export function visible(text) {
  const plain = text.replaceAll('\r\n', '\n');
  const found = [];
  let from = 0;
  for (const { 0: character, index } of plain.matchAll(HAZARD)) {
    const code = character.codePointAt(0);
    const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    const mark = document.createElement('span');
    mark.className = 'unseen';
    mark.title = `invisible character ${name}`;
    mark.textContent = code < 0x20 ? String.fromCodePoint(0x2400 + code) : `<${name}>`;
    found.push(plain.slice(from, index), mark);
    from = index + character.length;
  }
  found.push(plain.slice(from));
  return found.filter((part) => part !== '');
}

/** Replaces the children of an element. The focus and the caret stay on an element with the same id. If there is none, the
 * focus moves to this element, so that keyboard users continue from there. */
export function fill(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  parent.replaceChildren(...nodes(children));
  if (focused === null || focused === parent) return;
  const now = (focused.id && document.getElementById(focused.id)) || parent;
  if (now === parent && !parent.hasAttribute('tabindex')) parent.tabIndex = -1;
  now.focus({ preventScroll: true });
  if (Number.isInteger(focused.selectionStart) && now.setSelectionRange) now.setSelectionRange(focused.selectionStart, focused.selectionStart);
}

/** A button. It cannot be pressed again until its action is done. `decides` is a text of the content that it decides on: it
 * acts only on input that begins after this content was visible for a while. */
export function button(label, act, { decides, ...attributes } = {}) {
  const press = async (event) => {
    const pressed = event.currentTarget;
    if (pressed.getAttribute('aria-disabled') === 'true' || (decides && !(began(event) >= looks.get(decides)?.enough))) return;
    pressed.setAttribute('aria-disabled', 'true');
    pressed.removeAttribute('data-decides');
    try {
      await act(pressed);
    } catch (error) {
      fail(error);
    } finally {
      if (decides) pressed.setAttribute('data-decides', '');
      else pressed.removeAttribute('aria-disabled');
    }
  };
  const made = h('button', { type: 'button', onclick: press, 'data-decides': Boolean(decides), 'aria-disabled': decides && 'true', ...attributes }, label);
  contents.set(made, decides);
  return made;
}

// What each button decides on, and since when each content on the page has been visible for long enough.
const contents = new WeakMap();
let looks = new Map();

function look() {
  const begun = { enough: Infinity };
  const enough = () => {
    begun.enough = performance.now();
    watch();
  };
  // The second frame begins when the first has been painted; a hidden page has none.
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(enough, LOOK)));
  return begun;
}

/** Enables buttons that decide on content that was visible for long enough. Content that has disappeared is forgotten. */
function watch() {
  const shown = new Map();
  for (const one of document.querySelectorAll('[data-decides]')) {
    const content = contents.get(one);
    const isShown = one.getClientRects().length > 0;
    if (isShown && !shown.has(content)) shown.set(content, looks.get(content) ?? look());
    if (isShown && shown.get(content).enough < Infinity) one.removeAttribute('aria-disabled');
    else one.setAttribute('aria-disabled', 'true');
  }
  looks = shown;
}

function lookAnew() {
  looks.clear();
  watch();
}

new MutationObserver(watch).observe(document, { subtree: true, childList: true, attributeFilter: ['hidden', 'data-running', 'data-decides'] });
addEventListener('focus', lookAnew);
document.addEventListener('visibilitychange', lookAnew);

// When the last press of the pointer began, and that of a key that is still held.
let [pointed, keyed] = [0, null];
addEventListener('pointerdown', (event) => { pointed = event.timeStamp; }, true);
addEventListener('keydown', (event) => { keyed = event.repeat ? keyed ?? 0 : event.timeStamp; }, true);
// The space bar clicks after this event.
addEventListener('keyup', () => setTimeout(() => { keyed = null; }), true);

/** When the input that led to a click began. Screen readers click without a pointer or a key. */
const began = (click) => (click.detail > 0 ? pointed : keyed ?? click.timeStamp);

/** Shows a note, and announces it to screen readers. */
export function tell(text) {
  notice('notices', 'note', text);
}

/** Shows an error. */
export function fail(error) {
  if (error?.code !== 'unauthorized') notice('errors', 'error', error?.message ?? String(error));
}

export function clearNotices() {
  for (const id of ['notices', 'errors']) fill(document.getElementById(id));
}

function notice(id, kind, text) {
  const dismiss = (event) => {
    event.currentTarget.parentElement.remove();
    document.getElementById('main').focus();
  };
  const close = h('button', { type: 'button', class: 'plain', 'aria-label': 'Dismiss', onclick: dismiss }, '✕');
  const made = h('p', { class: `notice ${kind}` }, h('span', {}, text), close);
  document.getElementById(id).replaceChildren(made);
  if (kind === 'note') setTimeout(() => made.contains(document.activeElement) || made.remove(), NOTE);
}

/** Asks in a dialog. `act` gets the form; if it fails, the dialog stays open and shows the error. */
export function ask({ title, body, label, danger, act, failed }) {
  const problem = h('div', { role: 'alert' });
  const submit = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, label);
  const form = h('form', {}, h('h2', { id: 'dialog-title' }, title), body, problem,
    h('p', { class: 'actions' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), submit));
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', onclose: () => dialog.remove() }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await act(form);
      dialog.close();
    } catch (error) {
      fill(problem, h('p', { class: 'notice error' }, error.message), failed?.(error));
    }
    submit.disabled = false;
  });
  document.body.append(dialog);
  dialog.showModal();
  (form.querySelector('textarea, input[type=text]') ?? submit).focus();
}

/** `3 files`, `1 file`. */
export const count = (n, thing) => `${n.toLocaleString('en')} ${thing}${n === 1 ? '' : 's'}`;

/** Roughly how long ago a time was, with the time itself as its title. */
export function when(time) {
  const then = new Date(time);
  const minutes = Math.round((Date.now() - then) / 60_000);
  const steps = [[1, 'just now'], [60, `${minutes} min ago`], [36 * 60, `${Math.round(minutes / 60)} h ago`]];
  const told = steps.find(([limit]) => minutes < limit)?.[1] ?? then.toLocaleDateString('en', { dateStyle: 'medium' });
  return h('time', { datetime: time, title: then.toLocaleString() }, told);
}

/** Debounces a function: calls it once, a while after the last request. */
export function later(milliseconds, act) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), milliseconds);
  };
}

/** Calls a function at most once a frame, before it is drawn. */
export function perFrame(act) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      act();
    });
  };
}

/** Runs at most one call at a time. Requests made meanwhile share one further call, so that its answer is the newest. */
export function oneAtATime(act) {
  let [running, next] = [null, null];
  return function call() {
    if (!running) {
      running = act().finally(() => { running = null; });
      return running;
    }
    next ??= running.catch(() => {}).then(() => {
      next = null;
      return call();
    });
    return next;
  };
}
