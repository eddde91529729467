// The page of all exercises: what is solved, which are open, and the reader's progress as a file.
import * as progress from "./progress.js";

export function bindProgressPage(form) {
  const items = [...document.querySelectorAll("li[data-exercise]")];
  const sections = [...document.querySelectorAll("section:has(> .sb-exercise-list)")];
  const file = form.querySelector("input[type=file]");
  const say = (text) => (form.querySelector(".sb-progress-note").textContent = text);

  const show = () => {
    const found = progress.all();
    const open = form.elements.show.value === "open";
    for (const item of items) {
      const { solved, tried } = found[item.dataset.exercise] ?? {};
      item.classList.toggle("sb-solved", Boolean(solved));
      item.hidden = open && Boolean(solved);
      state(item.querySelector(".sb-state"), solved, tried);
    }
    for (const section of sections) {
      const here = [...section.querySelectorAll("li[data-exercise]")];
      section.classList.toggle("sb-all-solved", here.every((item) => item.hidden));
      section.querySelector(".sb-count").textContent = progress.count(here.map((item) => item.dataset.exercise));
    }
    form.querySelector(".sb-progress-count").textContent = progress.count(items.map((item) => item.dataset.exercise));
    if (!progress.kept()) say("This browser keeps nothing for this page: your progress lasts until you leave it. Export it to keep it.");
  };

  const actions = {
    export() {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([progress.exported()], { type: "application/json" }));
      link.download = "scalebook-progress.json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      say("Exported.");
    },
    import: () => file.click(),
    reset() {
      const sure = confirm("Forget what you have solved, tried and typed, in all exercises? It cannot be undone; a file that you exported can be imported again.");
      if (sure) progress.reset();
      say(sure ? "All exercises are open again." : "Nothing was changed.");
    },
  };
  form.addEventListener("click", ({ target }) => actions[target.dataset.do]?.());
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", async ({ target }) => {
    if (target !== file) return show();
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      const n = progress.imported(await chosen.text());
      const kept = progress.kept() ? "" : " This browser keeps nothing for this page, so that lasts until you leave it.";
      say(`Imported: ${n === 1 ? "one exercise" : `${n} exercises`}.${kept}`);
    } catch (error) {
      say(error.message);
    }
    file.value = ""; // so that the same file can be chosen again
  });
  progress.changes.addEventListener("change", show);
  show();
}

function state(place, solved, tried) {
  place.textContent = tried ? `tried ${tried === 1 ? "once" : `${tried} times`}` : "";
  if (!solved) return;
  const words = document.createElement("span");
  words.className = "sb-visually-hidden";
  words.textContent = "solved on ";
  place.replaceChildren("✓ ", words, solved);
}
