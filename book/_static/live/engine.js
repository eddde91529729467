// The library behind the page: Python in two workers, each started when it is first asked. A long answer in one does not hold up drawing in the other.
//
//   ask(request, { lane = "fast", key, seconds = 20, onStatus })   a Promise of the reply, a plain object. It never rejects.
//     Of the requests with one key that still wait, only the newest is answered; an older one gets { ok: false, superseded: true }.
//     What the reader has to know comes as { ok: false, error }, with stopped: true when it took more than those seconds, failed: true when
//     there is no library.
//   start(lane = "fast")    a Promise of whether the lane is there.
//   onStatus(listener)      listener(status, lane) hears "starting", "ready", "working", "failed".
import { files } from "./files.js";

const LOAD_LIMIT = 120; // seconds until a lane is there
const ABSENT = {
  ok: false,
  failed: true,
  error: "The library could not be started in this browser. The page reads well without it; to try again, load the page anew.",
};
const tooLong = (seconds) =>
  `This took longer than ${seconds} seconds and was stopped. Try a smaller case, or run it in Python on your own machine.`;
const BROKEN = "The library broke off while it worked on this, and was started anew. Try another case.";

const listeners = new Set();

class Lane {
  constructor(name) {
    this.name = name;
    this.waiting = new Map(); // key -> a request that waits, oldest first
    this.status = "off";
  }

  become(status) {
    this.status = status;
    for (const listener of listeners) listener(status, this.name);
    for (const { onStatus } of this.job ? [this.job] : this.waiting.values()) onStatus?.(status);
  }

  start() {
    if (this.status === "off") this.launch();
    return this.there;
  }

  launch() {
    mark("start", this.name);
    this.there = new Promise((resolve) => (this.settle = resolve));
    this.worker = new Worker(files.worker, { type: "module", name: `scalebook ${this.name}` });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.lose(event.message);
    this.worker.postMessage({ files });
    this.clock = setTimeout(() => this.lose("it takes too long to start"), LOAD_LIMIT * 1000);
    this.become("starting");
  }

  hear({ ready, reply, failure }) {
    if (failure !== undefined) return this.lose(failure);
    clearTimeout(this.clock);
    if (ready) {
      mark("ready", this.name);
      this.settle(true);
    } else {
      const answer = JSON.parse(reply);
      this.finish(answer);
      if (answer.bug || answer.restart) return this.renew(); // a reader's program may have changed the library
    }
    this.next();
  }

  /** The worker is of no use any more: without a request at work the lane is given up, else another worker takes its place. */
  lose(why) {
    this.end();
    console.error(`scalebook, ${this.name} lane:`, why);
    if (this.job) return this.restart(BROKEN);
    this.become("failed");
    this.settle(false);
    for (const { resolve } of this.waiting.values()) resolve(ABSENT);
    this.waiting.clear();
  }

  end() {
    clearTimeout(this.clock);
    this.worker.onmessage = this.worker.onerror = null; // what it may still have said is not heard
    this.worker.terminate();
  }

  restart(error) {
    this.end();
    this.finish({ ok: false, stopped: true, error });
    this.launch();
  }

  renew() {
    this.end();
    this.launch();
  }

  finish(reply) {
    const { resolve } = this.job;
    this.job = undefined;
    if (!this.answered) mark("first-answer", this.name);
    this.answered = true;
    resolve(reply);
  }

  next() {
    const [first] = this.waiting;
    if (!first) return this.become("ready");
    [, this.job] = first;
    this.waiting.delete(first[0]);
    this.worker.postMessage({ request: JSON.stringify(this.job.request) });
    const { seconds } = this.job;
    this.clock = setTimeout(() => this.restart(tooLong(seconds)), seconds * 1000);
    this.become("working");
  }

  ask(key, job) {
    return new Promise((resolve) => {
      if (this.status === "failed") return resolve(ABSENT);
      this.waiting.get(key)?.resolve({ ok: false, superseded: true });
      this.waiting.set(key, { ...job, resolve });
      if (this.status === "off") this.start();
      else if (this.status === "ready") this.next();
      else if (this.status === "starting") job.onStatus?.("starting");
    });
  }
}

const lanes = { fast: new Lane("fast"), slow: new Lane("slow") };

/** Marks a moment in the browser's timeline: scalebook:start, scalebook:ready, scalebook:first-answer, and :slow after it for that lane. */
function mark(what, lane) {
  performance.mark(`scalebook:${what}${lane === "fast" ? "" : `:${lane}`}`);
}

export const ask = (request, { lane = "fast", key = Symbol("its own"), seconds = 20, onStatus } = {}) =>
  lanes[lane].ask(key, { request, seconds, onStatus });
export const start = (lane = "fast") => lanes[lane].start();
export const onStatus = (listener) => listeners.add(listener);
