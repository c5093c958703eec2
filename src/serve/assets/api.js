// Requests to deaddrop, and the events that it sends.

const KEY = 'deaddrop-token';
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
// A line comes at least every ten seconds.
const SILENCE = 25_000;

/** An error of a request, with deaddrop's code and sentence. */
export class CallError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Removes the token from the address, where it would stay in the history. Returns whether there was one. */
export function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (!given) return false;
  sessionStorage.setItem(KEY, given[1]);
  history.replaceState(null, '', location.pathname);
  return true;
}

const headers = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ''}` });

/** Whether deaddrop was restarted, so that the token or the name of the page is another one. */
const isOfAnotherStart = ({ status }) => status === 401 || status === 421;

/** Sends a request. Returns the list of objects in the answer. */
export async function call(name, body = {}) {
  let response;
  try {
    response = await fetch(`/api/${name}`, { method: 'POST', headers: headers(), body: JSON.stringify(body) });
  } catch {
    throw new CallError('unreachable', 'deaddrop does not answer. Is `deaddrop serve` still running?');
  }
  const answer = await response.json();
  if (response.ok) return answer;
  if (isOfAnotherStart(response)) dispatchEvent(new Event('unauthorized'));
  throw new CallError(answer.error.code, answer.error.message);
}

/** Like `call`, for requests whose answer is one object. */
export const one = async (name, body) => (await call(name, body))[0];

/** Receives events until the token becomes invalid. A lost connection is tried again, less and less often. */
export async function listen(onEvent, onState) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    const abort = new AbortController();
    try {
      const response = await fetch('/api/events', { headers: headers(), signal: abort.signal });
      if (isOfAnotherStart(response)) {
        dispatchEvent(new Event('unauthorized'));
        return;
      }
      if (response.ok) {
        onState('live');
        wait = FIRST_WAIT;
        await read(response.body.getReader(), abort, onEvent);
      }
    } catch {
      // Reported below, and tried again.
    }
    abort.abort();
    onState('lost');
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
      addEventListener('online', resolve, { once: true });
    });
  }
}

async function read(reader, abort, onEvent) {
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const silence = setTimeout(() => abort.abort(), SILENCE);
    const { value, done } = await reader.read();
    clearTimeout(silence);
    if (done) return;
    const messages = (text + decoder.decode(value, { stream: true })).split('\n\n');
    text = messages.pop();
    for (const message of messages) {
      if (message.startsWith('data: ')) onEvent(JSON.parse(message.slice(6)));
    }
  }
}
