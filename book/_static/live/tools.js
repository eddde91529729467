// Below the figure: the table, the call in Python, the link, and the way back.
import * as address from "./address.js";

export function bindTools(explorer) {
  const { figure } = explorer;
  const tools = figure.querySelector(".sb-tools");
  const table = tools.querySelector("details.sb-table");
  const shown = document.createElement("div"); // what was copied, for browsers that refuse to copy
  shown.className = "sb-shown";
  shown.hidden = true;
  shown.innerHTML = "<p></p><pre><code></code></pre>";
  const [told, code] = [shown.querySelector("p"), shown.querySelector("code")];
  let pending = false; // the reader asked for code that is on its way
  let python = false; // code is shown, and follows the figure
  tools.after(shown);

  const copy = async (words, what) => {
    code.textContent = words;
    shown.hidden = false;
    try {
      await navigator.clipboard.writeText(words);
      told.textContent = `Copied: ${what}`;
    } catch {
      told.textContent = `Select and copy: ${what}`;
    }
    explorer.say(told.textContent);
  };

  table?.addEventListener("toggle", () => {
    if (table.open && explorer.live) explorer.change();
  });
  tools.querySelector('[data-do="python"]')?.addEventListener("click", () => {
    pending = python = true;
    explorer.change();
  });
  tools.querySelector('[data-do="link"]')?.addEventListener("click", () => {
    python = false;
    const what = address.whole(explorer.good) ? "as it is now" : "without the text that was pasted, which is too long for a link";
    copy(address.link(explorer.id, explorer.start, explorer.good), `a link to this figure ${what}`);
  });
  tools.querySelector('[data-do="reset"]')?.addEventListener("click", () => {
    shown.hidden = true;
    python = false;
    figure.querySelector(".sb-guessed")?.remove();
    explorer.reset();
  });

  return {
    /** The code that was asked for does not come. */
    fault() {
      pending = false;
    },
    /** What an answer must bring along. */
    wanted: () => [...(table?.open ? ["table"] : []), ...(python ? ["python"] : [])],
    update(reply) {
      if (reply.table && table) table.replaceChildren(table.querySelector("summary"), fragment(reply.table));
      if (!reply.python) return;
      if (pending) copy(reply.python, "this figure in Python");
      else if (python && reply.python !== code.textContent) {
        code.textContent = reply.python;
        told.textContent = "This figure in Python";
      }
      pending = false;
    },
  };
}

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}
