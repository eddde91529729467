// The native inputs of a figure: what each asks for, and how it follows what the library answers. They stand in the page already.

const PAUSE = 350; // ms without a key before what is typed is tried
const STEP = 900; // ms for which a step is shown in play

/** Binds the controls; each has `place(spec, newest)`, which shows an answer. */
export function bindControls(explorer) {
  const { figure } = explorer;
  const made = {};
  for (const box of figure.querySelectorAll(".sb-control")) {
    const kind = [...box.classList].map((name) => kinds[name]).find(Boolean);
    made[box.dataset.key] = kind(box, box.dataset.key, explorer);
  }
  const all = Object.values(made);
  const form = figure.querySelector(".sb-controls");
  form.reset(); // a browser may have put back what stood here when the page was left
  form.addEventListener("submit", (event) => event.preventDefault());
  return {
    /** Shows the library's answer; one that the reader has already overtaken changes words and ranges, and moves no input. */
    update(specs, newest) {
      for (const [key, spec] of Object.entries(specs)) made[key]?.place(spec, newest);
    },
    /** Shows what a link asks for, before the library has answered. */
    preview(asked) {
      for (const [key, words] of Object.entries(asked)) if (Object.hasOwn(made, key)) made[key].preview?.(words);
    },
    /** Marks the fields whose text the library refused. */
    fault: () => all.forEach((control) => control.fault?.()),
    /** What was typed gives way to the answer that comes. */
    forget: () => all.forEach((control) => control.forget?.()),
    stop: () => all.forEach((control) => control.stop?.()),
    focus: (key) => made[key]?.focus?.(),
    get playing() {
      return all.some((control) => control.playing);
    },
  };
}

function range(box, key, explorer) {
  const [input, output] = [box.querySelector("input"), box.querySelector("output")];
  let values = box.dataset.values ? JSON.parse(box.dataset.values) : null;
  input.addEventListener("input", () => explorer.move({ [key]: values ? values[input.valueAsNumber] : input.valueAsNumber }));
  return {
    focus: () => input.focus({ preventScroll: true }),
    place(spec, newest) {
      if (spec.values) values = spec.values;
      if (spec.max !== undefined) input.max = spec.max;
      if (newest) input.value = spec.value;
      output.textContent = spec.text;
      input.setAttribute("aria-valuetext", spec.text);
    },
  };
}

function player(box, key, explorer) {
  const scrubber = range(box, key, explorer);
  const [input, play] = [box.querySelector("input"), box.querySelector('[data-do="play"]')];
  let timer = 0;

  const end = () => Number(input.max);
  const go = (step) => {
    input.value = step;
    explorer.set({ [key]: input.valueAsNumber });
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  };
  /** The next step, once the last one is on the screen; it ends at the end. */
  const advance = () => {
    if (explorer.busy) {
      timer = setTimeout(advance, 50);
      return;
    }
    go(input.valueAsNumber + 1);
    timer = setTimeout(advance, STEP);
    if (input.valueAsNumber >= end()) stop();
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = "Pause";
    if (input.valueAsNumber < end()) return advance();
    go(0);
    timer = setTimeout(advance, STEP);
  });
  for (const [name, by] of [
    ["back", -1],
    ["forward", 1],
  ])
    box.querySelector(`[data-do="${name}"]`).addEventListener("click", () => {
      stop();
      go(input.valueAsNumber + by);
    });
  return {
    ...scrubber,
    stop,
    get playing() {
      return timer !== 0;
    },
  };
}

function choice(box, key, explorer) {
  box.addEventListener("change", (event) => explorer.move({ [key]: event.target.value }));
  const row = box.querySelector(".sb-segments");
  const name = box.querySelector("input").name;
  return {
    preview(words) {
      for (const input of row.querySelectorAll("input")) if (input.value === words) input.checked = true;
    },
    place(spec, newest) {
      if (spec.options) offer(row, spec.options, ([value, words]) => segment(name, value, words));
      if (newest) for (const input of row.querySelectorAll("input")) input.checked = input.value === spec.value;
    },
  };
}

function segment(name, value, words) {
  const [label, input, span] = ["label", "input", "span"].map((tag) => document.createElement(tag));
  Object.assign(input, { type: "radio", name, value });
  span.textContent = words;
  label.append(input, span);
  return label;
}

function select(box, key, explorer) {
  const input = box.querySelector("select");
  input.addEventListener("change", () => explorer.move({ [key]: input.value }));
  return {
    preview(words) {
      if ([...input.options].some(({ value }) => value === words)) input.value = words;
    },
    place(spec, newest) {
      if (spec.options) offer(input, spec.options, ([value, words]) => new Option(words, value));
      if (newest) input.value = spec.value;
    },
  };
}

/** Puts new options into a list, if they are new: the one with the focus is not lost for nothing. */
function offer(list, options, make) {
  const text = JSON.stringify(options);
  if (list.dataset.options === text) return;
  list.dataset.options = text;
  const focused = list.contains(document.activeElement) && document.activeElement.value;
  list.replaceChildren(...options.map(make));
  if (focused) [...list.querySelectorAll("input")].find((input) => input.value === focused)?.focus();
}

function text(box, key, explorer) {
  const input = box.querySelector("input, textarea");
  let timer = 0; // runs while something typed has not been tried
  const forget = () => {
    clearTimeout(timer);
    timer = 0;
  };
  const apply = () => {
    forget();
    explorer.move({ [key]: input.value.trim() });
  };
  const write = (words) => {
    if (!timer && input.value.trim() !== words) input.value = words;
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, PAUSE);
  });
  input.addEventListener("blur", apply);
  input.addEventListener("keydown", (event) => {
    const begins = input.type === "textarea" && !event.ctrlKey && !event.metaKey; // of several lines, Enter alone begins the next
    if (event.key === "Enter" && !begins) apply();
  });
  return {
    forget,
    preview: write,
    fault() {
      input.setAttribute("aria-invalid", String(explorer.wanted[key] !== explorer.good[key]));
      write(explorer.wanted[key]);
    },
    place(spec, newest) {
      if (!newest) return;
      input.removeAttribute("aria-invalid");
      write(spec.value);
    },
  };
}

function toggle(box, key, explorer) {
  const input = box.querySelector("input");
  input.addEventListener("change", () => explorer.move({ [key]: input.checked }));
  return {
    preview: (words) => (input.checked = words === "true"),
    place(spec, newest) {
      if (newest) input.checked = spec.value;
    },
  };
}

const kinds = {
  "sb-range": range,
  "sb-player": player,
  "sb-choice": choice,
  "sb-select": select,
  "sb-text": text,
  "sb-toggle": toggle,
};
