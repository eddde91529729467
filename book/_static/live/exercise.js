// Answers to exercises: what is typed goes to the library, in this browser, and its verdict stands beneath. Progress is kept by progress.js.
import * as progress from "./progress.js";

const QUICK = 200; // ms until "Checking …" is shown: most verdicts come sooner
const AFTER = 2; // wrong answers, until the hint is offered
let engine; // fetched when the reader first goes to an answer box

export function bindExercises() {
  const bound = [...document.querySelectorAll("form.sb-answer")].map((form) => new Answer(form));
  const counts = new Map(); // a place beside each heading of exercises, and their ids
  for (const { form, id } of bound) {
    const heading = form.closest("section")?.querySelector("h1, h2, h3, h4");
    if (!heading) continue;
    const place = heading.querySelector(".sb-count") ?? document.createElement("span");
    place.className = "sb-count";
    heading.insertBefore(place, heading.querySelector(".headerlink"));
    counts.set(place, [...(counts.get(place) ?? []), id]);
  }
  const show = () => {
    for (const answer of bound) answer.mark();
    for (const [place, ids] of counts) place.textContent = ` ${progress.count(ids)}`;
  };
  progress.changes.addEventListener("change", show);
  show();
  const list = document.querySelector("form.sb-progress");
  if (list) import("./progress_page.js").then((module) => module.bindProgressPage(list));
}

const wake = () => (engine ??= import("./engine.js"));

class Answer {
  constructor(form) {
    this.form = form;
    this.id = form.dataset.exercise;
    this.lane = form.dataset.lane;
    this.box = form.closest(".sb-exercise");
    this.outcome = form.querySelector(".sb-outcome");
    this.hint = this.box.querySelector("details.sb-hint");
    this.blank = this.read();
    this.turn = 0;
    this.restore(progress.of(this.id).draft);
    form.addEventListener("focusin", () => this.start(), { once: true });
    form.addEventListener("input", () => this.typed());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.check();
    });
    form.querySelector("textarea")?.addEventListener("keydown", (event) => this.key(event));
  }

  start() {
    wake()
      .then(({ start }) => start(this.lane))
      .catch(() => {}); // told when an answer is checked
  }

  /** What stands in the fields, as texts by key. */
  read() {
    const names = [...this.form.elements].filter((field) => field.name).map((field) => [field.name, ""]);
    return { ...Object.fromEntries(names), ...Object.fromEntries(new FormData(this.form)) };
  }

  restore(draft) {
    for (const [key, text] of Object.entries(draft ?? {})) if (Object.hasOwn(this.blank, key)) this.form.elements[key].value = text;
  }

  typed() {
    this.start();
    const now = this.read();
    const changed = Object.keys(now).some((key) => now[key] !== this.blank[key]);
    progress.keepDraft(this.id, changed ? now : null);
  }

  async check() {
    const turn = ++this.turn;
    const wait = (text) => turn === this.turn && this.say(text, "sb-note");
    const late = setTimeout(wait, QUICK, "Checking …");
    let reply;
    try {
      const { ask } = await wake();
      const onStatus = (status) => status === "starting" && wait("Python is starting in this page …");
      reply = await ask({ do: "check", id: this.id, answer: this.read() }, { lane: this.lane, key: this.id, onStatus });
    } catch (error) {
      engine = undefined; // it could not be fetched: the next try fetches it again
      reply = { ok: false, error: `The library cannot be fetched (${error.message}). What you typed is kept; check it again when you are connected.` };
    }
    clearTimeout(late);
    if (turn !== this.turn || reply.superseded) return; // a newer answer is being checked
    if (reply.ok) this.show(reply);
    else this.say(reply.error, "sb-verdict sb-unreadable");
  }

  show({ html, status }) {
    progress.note(this.id, status);
    this.outcome.innerHTML = html;
    this.outcome.firstElementChild?.removeAttribute("role"); // the outcome is announced as a whole
    const fields = this.form.querySelectorAll("input:not([type=radio]), select, textarea");
    if (fields.length === 1) fields[0].setAttribute("aria-invalid", String(status !== "right"));
    const { tried = 0, solved } = progress.of(this.id);
    if (status !== "right" && !solved && tried >= AFTER && this.hint && !this.hint.open) this.offer();
    if (!progress.kept()) this.add("p", "sb-note", "This browser keeps nothing for this page: your progress lasts until you leave it.");
  }

  offer() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sb-plain";
    button.textContent = "Open the hint";
    button.addEventListener("click", () => {
      this.hint.open = true;
      this.hint.querySelector("summary").focus();
      button.remove();
    });
    this.outcome.append(button);
  }

  say(text, css) {
    this.outcome.replaceChildren();
    this.add("p", css, text);
  }

  add(tag, css, text) {
    const words = document.createElement(tag);
    words.className = css;
    words.textContent = text;
    this.outcome.append(words);
  }

  /** In code, Ctrl+Enter checks, and a new line begins where the last one did, or deeper after a colon. */
  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      this.form.requestSubmit();
      return;
    }
    const area = event.target;
    const line = area.value.slice(0, area.selectionStart).split("\n").at(-1);
    const deeper = line.trimEnd().endsWith(":") ? "    " : "";
    document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${deeper}`); // so that it can be undone
  }

  mark() {
    const { solved } = progress.of(this.id);
    this.box.classList.toggle("sb-solved", Boolean(solved));
    const mark = this.box.querySelector(".sb-solved-mark");
    if (solved) mark.title = `solved on ${solved}`;
    else mark.removeAttribute("title");
  }
}
