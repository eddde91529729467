// Words in the text that set a figure: <span class="sb-set" data-for="NAME" data-set='{"B": 240}'>. Without a script they are plain words.

export function bindWords(explorers) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  for (const span of document.querySelectorAll("span.sb-set[data-for]")) {
    const explorer = explorers.get(span.dataset.for);
    if (!explorer) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sb-set";
    button.append(...span.childNodes);
    button.setAttribute("aria-controls", explorer.id);
    button.addEventListener("click", () => {
      explorer.uncover();
      // The words describe the figure as the page shows it, so what else was moved goes back to the start.
      explorer.reset(JSON.parse(span.dataset.set));
      if (visible(explorer.figure)) return;
      explorer.figure.tabIndex = -1;
      explorer.figure.focus({ preventScroll: true });
      const tall = explorer.figure.offsetHeight > innerHeight - 80;
      explorer.figure.scrollIntoView({ block: tall ? "start" : "nearest", behavior: still.matches ? "auto" : "smooth" });
    });
    span.replaceWith(button);
    keepTogether(button);
  }
}

/** A sign that follows a button goes with it to the next line. */
function keepTogether(button) {
  const after = button.nextSibling;
  const [sign] = (after?.nodeType === Node.TEXT_NODE && after.data.match(/^[.,;:?!)]+/)) || [];
  if (!sign) return;
  const pair = document.createElement("span");
  pair.className = "sb-together";
  button.replaceWith(pair);
  pair.append(button, sign);
  after.data = after.data.slice(sign.length);
}

/** Whether enough of a figure can be seen to notice that it changes, its controls above all. */
function visible(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && Math.min(bottom, innerHeight) - top >= Math.min(0.6 * (bottom - top), 0.6 * innerHeight);
}
