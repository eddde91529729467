// Guess first: the figure opens after a guess, and says how far off it was.

const PREFIXES = { n: 1e-9, µ: 1e-6, u: 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };

/** Lays a cover over all that would tell the answer: what is asked, a field, and a way to do without. */
export function bindGuess(explorer) {
  const { figure } = explorer;
  if (!figure.dataset.guess) return;
  const guess = JSON.parse(figure.dataset.guess);
  const cover = document.createElement("form");
  cover.className = "sb-guess";
  cover.noValidate = true;
  cover.innerHTML = `<label class="sb-guess-ask"></label>
    <span class="sb-guess-row"><input type="text" inputmode="decimal" autocomplete="off" spellcheck="false"><span class="sb-guess-unit"></span>
    <button class="sb-button sb-button-strong">Guess</button><button type="button" class="sb-button" data-do="show">Show me</button></span>
    <span class="sb-guess-problem" aria-live="polite"></span>`;
  const [label, input, problem] = ["label", "input", ".sb-guess-problem"].map((part) => cover.querySelector(part));
  input.id = `${figure.id}-guess`;
  problem.id = `${figure.id}-guess-problem`;
  label.htmlFor = input.id;
  label.textContent = guess.ask;
  cover.querySelector(".sb-guess-unit").textContent = guess.unit ?? "";
  figure.classList.add("sb-guessing");
  figure.querySelector(".sb-controls").before(cover);

  explorer.uncover = () => {
    cover.remove();
    figure.classList.remove("sb-guessing");
  };
  const open = (words) => {
    explorer.uncover();
    const told = document.createElement("p");
    told.className = "sb-guessed";
    told.tabIndex = -1; // so that the keyboard goes on from here, and a screen reader reads it
    told.textContent = words;
    explorer.readout.before(told);
    told.focus({ preventScroll: true });
    if (guess.set) explorer.reset(guess.set);
  };
  cover.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = parse(input.value, guess.unit);
    if (given > 0) return open(`Your guess: ${shown(given, guess.unit)}. ${verdict(given, guess.answer, guess.unit)}`);
    problem.textContent = `Write a positive number${guess.unit ? ` of ${guess.unit}` : ""}, such as 120, 3.5k or 2e6.`;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", problem.id);
    input.focus();
  });
  cover.querySelector('[data-do="show"]').addEventListener("click", () => open(`The answer: ${shown(guess.answer, guess.unit)}.`));
}

/** "1,200", "1.2k", "1.2 k tokens" -> 1200; NaN if it is no number. */
export function parse(text, unit = "") {
  let rest = text.trim().replace(/[_\s]/g, "").replace(/,(?=\d{3}(?!\d))/g, "").replace("−", "-");
  const bare = unit.replace(/\s/g, "");
  if (bare && rest.endsWith(bare)) rest = rest.slice(0, -bare.length);
  const found = rest.match(/^([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)([nµumkKMGTPE]?)$/i);
  return found && (!found[2] || found[2] in PREFIXES) ? Number(found[1]) * (found[2] ? PREFIXES[found[2]] : 1) : NaN;
}

/** How far a guess is from the answer, and on which side. */
export function verdict(given, answer, unit) {
  const is = `It is ${shown(answer, unit)}`;
  const ratio = given / answer;
  if (!(ratio > 0) || !Number.isFinite(ratio)) return `${is}.`;
  const factor = Math.max(ratio, 1 / ratio);
  if (factor < 1.03) return `${is}: you hit it.`;
  const side = ratio > 1 ? "high" : "low";
  if (factor < 1.15) return `${is}: close, a little too ${side}.`;
  return `${is}: your guess was ${digits(factor)} times too ${side}.`;
}

const digits = (value) => Number(value.toPrecision(value < 10 ? 2 : 3)).toLocaleString("en-GB");

/** A number of a unit as the book writes it: counts written out, measured amounts with a prefix. */
export function shown(value, unit = "") {
  const size = Math.abs(value);
  if (/^(B|B\/s|s|FLOPs|FLOPs\/s)$/.test(unit) && (size >= 1e3 || (size > 0 && size < 1))) {
    const steps = Object.entries(PREFIXES).filter(([sign]) => !"uK".includes(sign));
    const [prefix, scale] = steps.findLast(([, factor]) => factor <= size) ?? steps[0];
    return `${digits(value / scale)}\u00a0${prefix}${unit}`;
  }
  const exact = size >= 100 ? Math.round(value * 10) / 10 : Number(value.toPrecision(3));
  const number = (size >= 1000 ? Math.round(value) : exact).toLocaleString("en-GB", { maximumFractionDigits: 20 });
  return unit === "%" ? `${number}%` : `${number}\u00a0${unit}`.trim();
}
