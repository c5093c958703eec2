// The views of the settings, and of what doctor finds.

import { call } from './api.js';
import { fill, h } from './dom.js';
import { tag } from './steps.js';

/** A view of the answers to a request, which is sent when the view is shown. */
function listView(title, told, name, draw) {
  const body = h('div', {}, h('p', { class: 'muted' }, 'One moment …'));
  const element = h('div', {}, h('header', { class: 'head' }, h('h1', { tabindex: '-1' }, title)), h('section', { class: 'card', 'aria-label': title }, h('p', { class: 'muted' }, told), body));
  const update = async () => {
    try {
      fill(body, draw(await call(name)));
    } catch (error) {
      fill(body, h('p', { class: 'notice error' }, error.message));
    }
  };
  return { element, update };
}

const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

export const settingsView = () => listView('Settings', ['They can be changed with ', h('code', {}, 'deaddrop config set'), ' and in ', h('code', {}, 'deaddrop.toml'), '.'], 'config', (settings) =>
  h('table', { class: 'settings' }, h('caption', { class: 'hidden' }, 'Settings'),
    h('thead', {}, h('tr', {}, ['Name', 'Value', 'From'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, settings.map(({ name, value, source, origin, about, allowed }) => h('tr', {},
      h('th', { scope: 'row' }, h('code', {}, name), h('small', {}, about)), h('td', {}, h('code', {}, shown(value))),
      h('td', {}, source === 'default' ? 'default' : origin, !allowed && tag('asks', 'needs consent')))))));

export const doctorView = () => listView('Doctor', ['What ', h('code', {}, 'deaddrop doctor'), ' finds about the project and this machine.'], 'doctor', (findings) =>
  h('ul', { class: 'steps findings' }, findings.map(({ what, well, fault, told }) => h('li', {}, h('div', { class: 'step' },
    tag(well ? 'done' : fault ? 'failed' : '', well ? 'ok' : fault ? 'fault' : 'note'), h('b', {}, what), h('span', { class: 'summary' }, told))))));
