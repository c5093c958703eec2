// Unified diffs as tables, with colours for syntax and for changes within a line.

import { button, h, visible } from './dom.js';

const FIRST_ROWS = 400;
const WIDE = matchMedia('(min-width: 900px)');
const LAYOUT = 'deaddrop-diff';

const KEYWORDS = new Set(('abstract and as assert async await bool boolean break byte case catch char class const continue crate ' +
  'def default defer del delete do double done echo elif else end enum esac except export extends false fi final finally float fn for ' +
  'foreach from func function global go goto if impl import in include int interface is lambda let local long loop match mod move ' +
  'mut namespace new nil none None not null nullptr of or override package pass private protected pub public raise ref require ' +
  'return self Self short static str string struct super switch then this throw throws trait true True False try type typeof ' +
  'undefined union unless unsafe until use using val var virtual void when where while with yield select insert update create table')
  .split(' '));

const DOUBLE = String.raw`"(?:\\.|[^"\\])*"?`;
const SINGLE = String.raw`'(?:\\.|[^'\\])*'?`;
const BACK = '`(?:\\\\.|[^`\\\\])*`?';
// A lifetime in Rust is not a string.
const CHARACTER = String.raw`'(?:\\[^']+|[^'\\])'`;
const SLASHES = String.raw`\/\/.*|\/\*.*?(?:\*\/|$)`;

const FAMILIES = [
  [/\.rs$/i, SLASHES, [DOUBLE, CHARACTER]],
  [/\.(c|cc|cpp|cs|css|cxx|dart|go|gradle|groovy|h|hpp|java|jsonc?|jsx?|kts?|less|mjs|cjs|php|proto|scala|scss|swift|tsx?|zig)$/i, SLASHES, [DOUBLE, SINGLE, BACK]],
  [/\.(bash|cfg|cmake|conf|env|exs?|fish|ini|jl|mk|nix|pl|py|pyi|r|rb|sh|tf|toml|ya?ml|zsh)$|(^|\/)(Makefile|Dockerfile|Gemfile|Rakefile|\.\w+(rc|ignore))$/i, '(?<![$\\w])#.*', [DOUBLE, SINGLE]],
  [/\.(elm|hs|lua|sql)$/i, '--.*', [DOUBLE, SINGLE]],
  [/\.(clj|cljs|el|lisp|scm)$/i, ';.*', [DOUBLE]],
  [/\.(html?|svg|vue|xml)$/i, '<!--.*?(?:-->|$)', [DOUBLE, SINGLE]],
].map(([names, comment, strings]) => [names, new RegExp(`(?<comment>${comment})|(?<string>${strings.join('|')})|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_]\\w*)`, 'g')]);

// Lines that the file's heading repeats. Unusual modes are shown.
const NO_NEWS = /^(diff --git|index|---|\+\+\+) |^(new|deleted) file mode 100644$/;
const OPENS = /\/\*(?!.*\*\/)/;

/** The tokens of a line, `[kind, text]` each. `side` remembers whether a comment goes on. */
function tokens(line, syntax, side) {
  if (!syntax || line.length > 2_000) return [['', line]];
  const found = [];
  let from = 0;
  if (side.comment) {
    const end = line.indexOf('*/');
    if (end < 0) return [['comment', line]];
    from = end + 2;
    found.push(['comment', line.slice(0, from)]);
    side.comment = false;
  }
  syntax.lastIndex = from;
  for (let match; (match = syntax.exec(line)); ) {
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    const told = kind === 'word' ? (KEYWORDS.has(match[0]) ? 'keyword' : '') : kind;
    found.push(['', line.slice(from, match.index)], [told, match[0]]);
    from = match.index + match[0].length;
    if (kind === 'comment') side.comment = match[0].startsWith('/*') && OPENS.test(match[0]);
  }
  found.push(['', line.slice(from)]);
  return found;
}

/** A line in colours. The range is the part that changed. */
function painted(line, syntax, side, [begin, end] = [0, 0]) {
  let at = 0;
  return tokens(line, syntax, side).flatMap(([kind, text]) => {
    const start = at;
    at += text.length;
    const cuts = [0, begin - start, end - start, text.length].map((cut) => Math.max(0, Math.min(cut, text.length)));
    return [0, 1, 2].map((n) => {
      const piece = text.slice(cuts[n], cuts[n + 1]);
      const name = [kind && `t-${kind}`, n === 1 && 'changed'].filter(Boolean).join(' ');
      if (piece === '') return null;
      return name ? h('span', { class: name }, piece) : visible(piece);
    });
  });
}

/** Where two lines differ, as a range of each; undefined if they have little in common. */
function difference(before, after) {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  if ((start + end) * 3 < Math.max(before.length, after.length)) return [undefined, undefined];
  return [[start, before.length - end], [start, after.length - end]];
}

/** The rows of a diff: `same`, `add`, `del`, `hunk`, and `note` for others. */
export function rows(diff) {
  const found = [];
  let [old, now, oldLeft, nowLeft] = [0, 0, 0, 0];
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/s.exec(line);
    if (oldLeft <= 0 && nowLeft <= 0 && hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[3])];
      [oldLeft, nowLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      found.push({ kind: 'hunk', text: line });
    } else if (line.startsWith('\\') || (oldLeft <= 0 && nowLeft <= 0)) {
      if (!NO_NEWS.test(line)) found.push({ kind: 'note', text: line.replace(/^[#\\] /, '') });
    } else {
      const kind = { '+': 'add', '-': 'del' }[line[0]] ?? 'same';
      found.push({ kind, old, now, text: line.slice(1) });
      if (kind !== 'add') [old, oldLeft] = [old + 1, oldLeft - 1];
      if (kind !== 'del') [now, nowLeft] = [now + 1, nowLeft - 1];
    }
  }
  return found;
}

/** Rows with their lines painted; a line that replaces another is compared with it. */
function paint(all, syntax) {
  let sides = {};
  all.forEach((row, n) => {
    if (row.kind === 'hunk') sides = { old: {}, now: {} };
    if (row.kind !== 'del' || all[n - 1]?.kind === 'del') return;
    const deleted = all.slice(n).findIndex((other) => other.kind !== 'del');
    const added = all.slice(n + deleted);
    for (let at = 0; at < deleted && added[at]?.kind === 'add'; at += 1) {
      [all[n + at].range, added[at].range] = difference(all[n + at].text, added[at].text);
    }
  });
  sides = { old: {}, now: {} };
  for (const row of all) {
    if (row.kind === 'hunk') sides = { old: {}, now: {} };
    if (row.kind === 'hunk' || row.kind === 'note') row.nodes = visible(row.text);
    else if (row.kind === 'del') row.nodes = painted(row.text, syntax, sides.old, row.range);
    else {
      if (row.kind === 'same') tokens(row.text, syntax, sides.old);
      row.nodes = painted(row.text, syntax, sides.now, row.range);
    }
  }
  return all;
}

const number = (n) => h('td', { class: 'number', 'data-number': n ?? '' });
const whole = (row, columns) => h('tr', { class: row.kind }, h('td', { colspan: columns }, row.nodes));
const SIGNS = { add: '+', del: '−', same: ' ' };

function unified(all) {
  return all.map((row) => (SIGNS[row.kind] === undefined ? whole(row, 4)
    : h('tr', { class: row.kind }, number(row.kind === 'add' ? null : row.old), number(row.kind === 'del' ? null : row.now),
      h('td', { class: 'sign' }, SIGNS[row.kind]), h('td', { class: 'line' }, row.nodes))));
}

function sideBySide(all) {
  const half = (row, n) => [h('td', { class: `number ${row?.kind ?? 'none'}`, 'data-number': row ? n : '' }),
    h('td', { class: `line ${row?.kind ?? 'none'}` }, row?.nodes)];
  const made = [];
  for (let n = 0; n < all.length; n += 1) {
    const row = all[n];
    if (SIGNS[row.kind] === undefined) {
      made.push(whole(row, 4));
    } else if (row.kind === 'same') {
      const copy = { ...row, nodes: row.nodes.flat(9).map((node) => (node instanceof Node ? node.cloneNode(true) : node)) };
      made.push(h('tr', {}, half(copy, row.old), half(row, row.now)));
    } else {
      let end = n;
      while (all[end]?.kind === row.kind) end += 1;
      const [deleted, rest] = row.kind === 'del' ? [all.slice(n, end), all.slice(end)] : [[], all.slice(n)];
      const until = rest.findIndex((other) => other.kind !== 'add');
      const added = until < 0 ? rest : rest.slice(0, until);
      for (let at = 0; at < Math.max(deleted.length, added.length); at += 1) {
        made.push(h('tr', {}, half(deleted[at], deleted[at]?.old), half(added[at], added[at]?.now)));
      }
      n += deleted.length + added.length - 1;
    }
  }
  return made;
}

const isSplit = () => WIDE.matches && localStorage.getItem(LAYOUT) === 'side';

function table(path, diff, limit) {
  const all = rows(diff);
  const syntax = FAMILIES.find(([names]) => names.test(path))?.[1];
  const shown = paint(all.slice(0, limit), syntax);
  const split = isSplit();
  const made = h('table', { class: split ? 'diff side' : 'diff' },
    h('caption', { class: 'hidden' }, `Changes of ${path}`),
    (split ? ['number', '', 'number', ''] : ['number', 'number', 'sign', '']).map((name) => h('col', { class: name })), h('tbody', {}, split ? sideBySide(shown) : unified(shown)));
  if (all.length <= limit) return [made];
  const more = button(`Show all ${all.length.toLocaleString('en')} lines`, (pressed) => {
    pressed.previousElementSibling.replaceWith(...table(path, diff, Infinity));
    pressed.remove();
  }, { class: 'more' });
  return [made, more];
}

function file({ path, change, diff }, place, isOpen) {
  const all = rows(diff);
  const [added, deleted] = ['add', 'del'].map((kind) => all.filter((row) => row.kind === kind).length);
  const body = h('div', {});
  const draw = () => body.replaceChildren(...table(path, diff, FIRST_ROWS));
  const opened = (event) => event.target.open && body.childElementCount === 0 && draw();
  if (isOpen) draw();
  return h('details', { class: 'file', open: isOpen, ontoggle: opened },
    h('summary', {}, h('span', { class: `tag ${change}` }, change), h('code', { class: 'path' }, path), place && h('span', { class: 'muted' }, place),
      h('span', { class: 'counts' }, h('span', { class: 'plus' }, `+${added}`), ' ', h('span', { class: 'minus' }, `−${deleted}`))), body);
}

/** All files, `{ path, change, diff, before }` each; `before` is the step that follows the change, if it may use it. Long
 * ones are closed at first. */
export function files(all) {
  const hasPlaces = all.some(({ before }) => Number.isInteger(before));
  const place = ({ before }) => (Number.isInteger(before) ? `before step ${before}` : hasPlaces && 'at the end');
  let room = 1_000;
  const draw = () => all.map((one) => {
    room -= one.diff.split('\n').length;
    return file(one, place(one), room > 0);
  });
  const list = h('div', {}, draw());
  const change = (event) => {
    localStorage.setItem(LAYOUT, event.target.value);
    room = 1_000;
    list.replaceChildren(...draw());
  };
  const option = (value, label) => h('option', { value, selected: (isSplit() ? 'side' : 'unified') === value }, label);
  const layout = h('label', { class: 'layout' }, 'Layout ',
    h('select', { onchange: change }, option('unified', 'Unified'), option('side', 'Side by side')));
  return h('div', { class: 'files' }, all.length > 0 && layout, list);
}
