// One figure that answers. The state lives here; Python draws it, and the page shows what comes back.
import { ask, start } from "./engine.js";
import * as address from "./address.js";
import { bindControls } from "./controls.js";
import { bindGuess } from "./guess.js";
import { bindHooks } from "./hooks.js";
import { bindTools } from "./tools.js";
import { bindWords } from "./words.js";

const BROAD = 680; // the column: no picture is drawn wider
const LEAST = 200;
const NEAR = "400px"; // of the screen: so early the engine starts

export function bindExplorers() {
  const explorers = new Map();
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        start(explorers.get(target.id).lane);
      }
    },
    { rootMargin: NEAR },
  );
  for (const figure of document.querySelectorAll("figure.sb-explorer")) {
    try {
      explorers.set(figure.id, new Explorer(figure));
      near.observe(figure);
    } catch (error) {
      console.error(figure.id, error);
    }
  }
  bindWords(explorers);
}

class Explorer {
  constructor(figure) {
    this.figure = figure;
    this.id = figure.id;
    this.slow = "slow" in figure.dataset;
    this.lane = this.slow ? "slow" : "fast";
    this.start = JSON.parse(figure.dataset.state);
    this.wanted = { ...this.start }; // what the reader asked for
    this.good = { ...this.start }; // what the picture shows
    this.newest = 0; // number of the last change
    this.shown = 0; // number of the change that the picture answers
    this.asking = false;
    [this.stage, this.readout, this.error] = ["stage", "readout", "error"].map((name) => figure.querySelector(`.sb-${name}`));
    this.status = document.createElement("p");
    this.status.className = "sb-visually-hidden";
    this.status.setAttribute("role", "status");
    this.note = document.createElement("p");
    this.note.className = "sb-note-live";
    this.note.hidden = true;
    this.note.setAttribute("aria-hidden", "true"); // the status says the same
    this.stage.before(this.note);
    figure.append(this.status);
    this.said = this.readout.textContent;
    this.width = this.measured();
    this.tallest = 0; // height of the readout at this width

    this.controls = bindControls(this);
    this.uncover = () => {}; // opens a figure that waits for a guess
    bindHooks(this);
    this.tools = bindTools(this);
    this.linked = address.read(this.id);
    if (this.linked) {
      this.controls.preview(this.linked);
      this.set(this.linked);
    } else {
      bindGuess(this);
    }
    new ResizeObserver(() => {
      this.width = this.measured();
      if (this.live && this.live !== this.width) this.change();
    }).observe(this.stage);
    new ResizeObserver(([{ borderBoxSize }]) => {
      this.tallest = Math.max(this.tallest, borderBoxSize[0].blockSize);
    }).observe(this.readout);
  }

  /** The width to draw at. Sizes are kept, since to ask for one while the picture changes has the whole page laid out. */
  measured() {
    return Math.max(LEAST, Math.min(BROAD, Math.floor(this.stage.clientWidth)));
  }

  get busy() {
    return this.shown !== this.newest;
  }

  /** Asks for a change of some keys: {B: 256}. */
  set(patch) {
    if (Object.entries(patch).every(([key, value]) => String(this.wanted[key]) === String(value))) return;
    this.wanted = { ...this.wanted, ...patch };
    this.change();
  }

  /** The same, by the reader's own hand: what plays stops. */
  move(patch) {
    this.controls.stop();
    this.set(patch);
  }

  /** The start state, or one that differs from it in some keys. */
  reset(patch = {}) {
    this.controls.stop();
    this.controls.forget();
    this.wanted = { ...this.start, ...patch };
    this.change();
  }

  /** The picture is no longer what is asked for: it is redrawn at once, or as soon as the last answer is there; a slow one when the reader pauses. */
  change() {
    this.newest += 1;
    this.figure.dataset.busy = "";
    clearTimeout(this.announcing);
    if (this.slow) {
      clearTimeout(this.due);
      this.due = setTimeout(() => this.send(), 250);
    } else if (!this.asking) {
      this.send();
    }
    this.wait();
  }

  async send() {
    this.asking = true;
    const number = this.newest;
    const width = this.width;
    const request = { do: "explore", name: this.figure.dataset.explorer, state: this.wanted, width, with: this.tools.wanted() };
    const onStatus = (status) => (this.starting = status === "starting");
    const reply = await ask(request, { lane: this.lane, key: this.id, onStatus });
    const newest = number === this.newest;
    this.asking = false;
    if (newest) {
      this.shown = number;
      delete this.figure.dataset.busy;
      this.rest();
    }
    if (reply.ok && (newest || !this.slow)) this.show(reply, width, newest);
    else if (!reply.ok && newest) this.fail(reply);
    if (!newest && !this.slow) this.send();
  }

  show(reply, width, newest) {
    // as high as it has been: what follows does not jump when a sentence takes a line less
    if (this.live && this.live !== width) this.tallest = 0;
    this.readout.style.minHeight = `${this.tallest}px`;
    this.stage.innerHTML = reply.svg;
    this.readout.innerHTML = reply.readout;
    this.live = width;
    this.figure.classList.remove("sb-failed");
    this.figure.classList.toggle("sb-elsewhere", this.elsewhere(reply.state));
    this.error.hidden = true;
    this.stage.style.minHeight = "";
    if (newest) this.wanted = { ...reply.state };
    this.good = { ...reply.state };
    this.linked = null;
    this.controls.update(reply.controls, newest);
    this.tools.update(reply);
    address.write(this.id, this.start, this.good);
    if (newest) this.announce(this.readout.textContent);
  }

  /** Whether the figure shows another case than the one it opened with, of which its caption speaks; moving along sliders is the same case. */
  elsewhere(state) {
    const moved = Object.keys(state).filter((key) => state[key] !== this.start[key]);
    return moved.some((key) => !this.figure.querySelector(`[data-key="${key}"]`)?.matches(".sb-range, .sb-player"));
  }

  /** The library's own message stands over the last good picture, or without the library above it; what was typed stays. */
  fail({ error, bug, failed }) {
    if (bug) console.error(this.id, bug);
    const [words, ...lines] = error.split("\n");
    this.error.textContent = words;
    if (lines.length) {
      const code = document.createElement("code");
      code.textContent = `\n${lines.join("\n")}`;
      this.error.append(code);
    }
    this.error.hidden = false;
    this.figure.classList.add(failed ? "sb-absent" : "sb-failed");
    this.stage.style.minHeight = `${this.error.offsetHeight}px`;
    this.controls.stop();
    this.controls.fault();
    this.tools.fault();
    if (this.linked) this.wanted = { ...this.good }; // a link that cannot be had is told once
    this.linked = null;
    this.announce(error);
  }

  /** Says what is being waited for: that the library starts, or that a long answer is being worked out. */
  wait() {
    if (this.waiting) return;
    let since = performance.now();
    this.waiting = setInterval(() => {
      const now = performance.now();
      if (this.starting) {
        since = now;
        this.tell("starting the library in your browser…");
      } else if (now - since > 300) {
        this.note.textContent = `working… ${((now - since) / 1000).toFixed(1)} s`;
      }
      this.note.hidden = !this.note.textContent;
      this.figure.classList.toggle("sb-late", !this.note.hidden);
    }, 100);
  }

  rest() {
    clearInterval(this.waiting);
    this.waiting = 0;
    this.note.hidden = true;
    this.note.textContent = "";
    this.figure.classList.remove("sb-late");
  }

  tell(words) {
    if (this.note.textContent === words) return;
    this.note.textContent = words;
    this.say(words);
  }

  /** A screen reader hears it once the reader has stopped moving, not at every step, and not twice. */
  announce(words) {
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      if (words !== this.said && !this.controls.playing) this.say(words);
      this.said = words;
    }, 600);
  }

  say(words) {
    this.status.textContent = words;
  }
}
