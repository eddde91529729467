// The state of figures in the page's address: ?NAME.key=value…#NAME, only what differs from the start, and no text that was pasted at length.

const LONGEST = 200; // characters of a value: a longer one would make an address that not every server and program takes

const waiting = new Map();
let due = 0;

/** What the address asks of a figure, as texts {key: text}; null where it asks nothing. */
export function read(id) {
  const found = [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith(`${id}.`));
  return found.length ? Object.fromEntries(found.map(([name, text]) => [name.slice(id.length + 1), text])) : null;
}

/** Keeps the address in step with a figure, once the reader pauses; the browser's history gets no new entries. */
export function write(id, start, state) {
  const now = pairs(id, start, state);
  if (!waiting.has(id) && now.join("&") === stored(id).join("&")) return;
  waiting.set(id, now);
  clearTimeout(due);
  due = setTimeout(() => {
    const old = [...waiting.keys()].flatMap(stored);
    const all = [...parts().filter((part) => !old.includes(part)), ...[...waiting.values()].flat()];
    waiting.clear();
    history.replaceState(history.state, "", `${location.pathname}${all.length ? `?${all.join("&")}` : ""}#${id}`);
  }, 300);
}

/** The full address of a figure in a state, and of nothing else. */
export function link(id, start, state) {
  const asked = pairs(id, start, state);
  return `${location.origin}${location.pathname}${asked.length ? `?${asked.join("&")}` : ""}#${id}`;
}

/** Whether a link holds all of a state. */
export const whole = (state) => Object.values(state).every((value) => String(value).length <= LONGEST);

const parts = () => location.search.slice(1).split("&").filter(Boolean);
const stored = (id) => parts().filter((part) => part.startsWith(`${id}.`));
const pairs = (id, start, state) =>
  Object.entries(state)
    .filter(([key, value]) => String(value) !== String(start[key]) && String(value).length <= LONGEST)
    .map(([key, value]) => `${id}.${key}=${legible(String(value))}`);

// Signs that an address may hold as they are, so that a link can be read.
const legible = (text) => encodeURIComponent(text).replaceAll("%20", "+").replace(/%(2C|3A|2F|40|3D)/gi, decodeURIComponent);
