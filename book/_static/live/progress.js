// What the reader has solved, tried and typed: kept in this browser only, under one key. Where the browser keeps nothing, until the page is left.
const KEY = "scalebook.progress.1";
const FORMAT = "scalebook progress";
const DAY = /^\d{4}-\d\d-\d\d$/;
const WORD = /^[a-z0-9-]+\/[a-z0-9-]+$/;
const LONGEST = 20000; // characters of an answer that is kept
const MOST = 2000; // exercises that are kept
let held = null; // stands in for storage that is refused or full
let read = { text: null, found: {} }; // what was last read, so that typing reads it once
export const changes = new EventTarget(); // "change" after every change, here or in another tab

/** Everything, as {id: {tried, last, solved, draft}}; what cannot be read counts as nothing. */
export function all() {
  if (held) return held;
  try {
    const text = localStorage.getItem(KEY);
    if (text !== read.text) read = { text, found: cleaned(JSON.parse(text)?.exercises) };
    return read.found;
  } catch {
    return {};
  }
}

export const of = (id) => all()[id] ?? {};

/** Whether the browser keeps what is written. */
export const kept = () => held === null;

/** Notes a verdict: a right answer with its date, any other that could be read as a try. */
export function note(id, status) {
  if (status === "unreadable") return;
  const { tried = 0, solved } = of(id);
  change(id, status === "right" ? { solved: solved ?? today(), last: today() } : { tried: tried + 1, last: today() });
}

/** Keeps what was typed, as texts by field; null when there is nothing to keep. */
export function keepDraft(id, draft) {
  const texts = Object.entries(draft ?? {}).map(([key, text]) => [key, text.slice(0, LONGEST)]);
  change(id, { draft: texts.length ? Object.fromEntries(texts) : undefined });
}

/** The progress as the text of a file. */
export const exported = () => `${JSON.stringify({ format: FORMAT, version: 1, exported: today(), exercises: all() }, null, 1)}\n`;

/** Adds the progress of a file to what is here and says how many exercises it has; throws an Error that says what is wrong with it. */
export function imported(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("This file is not exported progress: it is not JSON. Choose one that Export has made; nothing was changed.");
  }
  if (found?.format !== FORMAT || found.version !== 1 || !found.exercises || typeof found.exercises !== "object" || Array.isArray(found.exercises))
    throw new Error(`This file is not exported progress: it lacks "format": "${FORMAT}", "version": 1. Choose one that Export has made; nothing was changed.`);
  const theirs = cleaned(found.exercises);
  const merged = { ...all() };
  for (const [id, entry] of Object.entries(theirs)) merged[id] = both(merged[id] ?? {}, entry);
  write(merged);
  return Object.keys(theirs).length;
}

export function reset() {
  write({});
}

/** How many of some exercises are solved, in words. */
export function count(ids) {
  const found = all();
  return `${ids.filter((id) => found[id]?.solved).length} of ${ids.length} solved`;
}

function change(id, part) {
  const found = all();
  const entry = Object.fromEntries(Object.entries({ ...found[id], ...part }).filter(([, value]) => value !== undefined));
  const { [id]: _, ...others } = found;
  write(Object.keys(entry).length ? { ...others, [id]: entry } : others);
}

function write(exercises) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ format: FORMAT, version: 1, exercises }));
    held = null;
  } catch {
    held = exercises;
  }
  changes.dispatchEvent(new Event("change"));
}

addEventListener("storage", ({ key }) => {
  if (key === KEY || key === null) changes.dispatchEvent(new Event("change"));
});

const both = (ours, theirs) => {
  const days = [ours.solved, theirs.solved].filter(Boolean).sort();
  const last = [ours.last, theirs.last].filter(Boolean).sort().at(-1);
  const tried = Math.max(ours.tried ?? 0, theirs.tried ?? 0);
  const draft = ours.draft ?? theirs.draft;
  return { ...(tried && { tried }), ...(last && { last }), ...(days[0] && { solved: days[0] }), ...(draft && { draft }) };
};

/** The entries of the right form, and of each only what is. */
function cleaned(entries) {
  const found = {};
  if (!entries || typeof entries !== "object") return found;
  for (const [id, entry] of Object.entries(entries).slice(0, MOST)) {
    if (!WORD.test(id) || !entry || typeof entry !== "object") continue;
    const good = {};
    if (Number.isSafeInteger(entry.tried) && entry.tried > 0) good.tried = entry.tried;
    for (const name of ["last", "solved"]) if (typeof entry[name] === "string" && DAY.test(entry[name]) && !Number.isNaN(Date.parse(entry[name]))) good[name] = entry[name];
    const texts = typeof entry.draft === "object" ? (entry.draft ?? {}) : {};
    const draft = Object.entries(texts).filter(([, text]) => typeof text === "string" && text.length <= LONGEST);
    if (draft.length) good.draft = Object.fromEntries(draft);
    if (Object.keys(good).length) found[id] = good;
  }
  return found;
}

function today() {
  const now = new Date();
  return new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 10);
}
