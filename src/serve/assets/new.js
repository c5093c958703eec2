// A new session: the task, and the files that its first outbox would show.

import { one } from './api.js';
import { button, count, fill, h, later } from './dom.js';

// A path as a pattern that matches nothing else.
const pattern = (path) => `/${path.replace(/[*?[\]\\!# ]/g, '\\$&')}`;
const lines = (box) => box.value.split('\n').map((line) => line.trim()).filter(Boolean);

const POLICIES = ['', 'ask', 'workspace', 'standard', 'restrictive', 'permissive'];

/** The view that begins a session. */
export function newView(app) {
  const [added, removed] = [new Set(), new Set()];
  let asked = 0;
  const soon = later(700, preview);
  const task = h('textarea', { id: 'task', rows: '5', placeholder: 'Write a calculator in Python, with tests', oninput: () => soon() });
  const box = (id) => h('textarea', { id, rows: '2', spellcheck: 'false', oninput: () => soon() });
  const [include, exclude] = [box('include'), box('exclude')];
  const choice = (id, options) => h('select', { id, onchange: () => soon() }, options.map(([value, label]) => h('option', { value }, label)));
  const policy = choice('policy', POLICIES.map((name) => [name, name || 'as in the settings']));
  const dialect = choice('dialect', [['tags', 'tags'], ['operations', 'JSON operations']]);
  const bare = h('input', { type: 'checkbox', id: 'bare', onchange: () => soon() });
  const shown = h('div', { id: 'shown' });
  const said = h('p', { class: 'hidden', role: 'status' });

  function body() {
    const patterns = bare.checked ? {} : { include: [...lines(include), ...[...added].map(pattern)], exclude: [...lines(exclude), ...[...removed].map(pattern)] };
    return { task: task.value, ...patterns, noContents: bare.checked, policy: policy.value || null, dialect: dialect.value };
  }

  async function preview() {
    const mine = (asked += 1);
    if (task.value.trim() === '') return fill(shown, h('p', { class: 'muted' }, 'Write the task. The files that the model will see first appear here.'));
    if (shown.querySelector('ul') === null) fill(shown, h('p', { class: 'muted' }, 'Looking for the files that the task needs …'));
    try {
      const first = await one('preview', body());
      if (mine === asked) draw(first);
    } catch (error) {
      if (mine === asked) fill(shown, h('p', { class: 'notice error' }, error.message));
    }
    return undefined;
  }

  function draw(first) {
    const told = `≈ ${first.tokens.toLocaleString('en')} tokens, ${count(first.shown.length, 'file')} shown, ${first.outlined.length} outlined`;
    said.textContent = told;
    const item = (path, isIn, n, kind) => {
      const check = h('input', { type: 'checkbox', id: `${kind}-${n}`, checked: isIn, onchange: () => {
        (check.checked ? removed : added).delete(path);
        (check.checked ? added : removed).add(path);
        soon();
      } });
      return h('li', {}, h('label', { class: 'check' }, check, h('code', { class: 'path' }, path)));
    };
    const list = (title, kind, paths, isIn) => paths.length > 0 && h('div', {}, h('h3', {}, title), h('ul', { class: 'paths' }, paths.map((path, n) => item(path, isIn, n, kind))));
    fill(shown, h('p', { class: 'muted' }, told), list('Shown', 'shown', first.shown, true), list('Only outlined', 'outlined', first.outlined, false),
      list('Excluded by you', 'out', [...removed].filter((path) => !first.shown.includes(path) && !first.outlined.includes(path)), false),
      h('details', {}, h('summary', {}, 'Show the first outbox'), h('pre', { class: 'quoted', tabindex: '0', role: 'group', 'aria-label': 'The first outbox' }, first.text)));
  }

  const begin = async () => {
    if (task.value.trim() === '') throw new Error('Write the task first.');
    const begun = await one('new', body());
    app.go(`#/s/${begun.session}`);
    await app.reload();
  };

  const element = h('div', { class: 'new' }, h('header', { class: 'head' }, h('h1', { tabindex: '-1' }, 'New session')), h('div', { class: 'pair' },
    h('section', { class: 'card', 'aria-label': 'Task' }, h('label', { class: 'field' }, 'Task, in your words', task),
      h('details', {}, h('summary', {}, 'Files, policy and dialect'),
        h('label', { class: 'field' }, 'Also show these files (patterns as in .gitignore, one a line)', include),
        h('label', { class: 'field' }, 'Do not show these', exclude),
        h('label', { class: 'check' }, bare, 'Show no contents at first'),
        h('label', { class: 'field' }, 'Policy', policy), h('label', { class: 'field' }, 'The model answers in', dialect)),
      h('p', { class: 'actions' }, button('Begin', begin, { class: 'primary', id: 'begin', title: 'Ctrl+Enter' }))),
    h('section', { class: 'card', 'aria-labelledby': 'shown-title' }, h('h2', { id: 'shown-title' }, 'What the model will see first'), said, shown)));
  return { element, update: preview, enter: () => document.getElementById('begin').click() };
}
