// The entry: makes what a page holds answer. Each part is a module of its own, fetched where it is needed; one that fails leaves the others alone.
const parts = [
  ["figure.sb-explorer", "./explorer.js", "bindExplorers"],
  ["form.sb-answer, form.sb-progress", "./exercise.js", "bindExercises"],
  [".sb-below", "./taking_part.js", "bindTakingPart"],
  ["div.math", "./formulas.js", "bindFormulas"],
];

for (const [what, file, bind] of parts)
  if (document.querySelector(what))
    import(file)
      .then((module) => module[bind]())
      .catch((error) => console.error(file, error));
