// Syntax colours: languages are loaded on demand.

const LANGUAGES = new Set(
  ("bash c css csv diff docker go html ini java js json log make md py regex rs sql toml ts xml " +
    "yaml").split(" "),
);
const ALIASES = new Map(Object.entries({
  python: "py", python3: "py", javascript: "js", jsx: "js", mjs: "js", typescript: "ts", tsx: "ts",
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", rust: "rs", yml: "yaml", markdown: "md",
  dockerfile: "docker", golang: "go", cpp: "c", "c++": "c", h: "c", svg: "xml", patch: "diff",
  makefile: "make", jsonc: "json", json5: "json", conf: "ini",
}));
const LONGEST = 12_000; // longer code stays plain, since it would take too long

export function languageOf(name) {
  const low = name.toLowerCase();
  return LANGUAGES.has(low) ? low : (ALIASES.get(low) ?? null);
}

/** Replace the text of `code` by spans with classes. Resolves when that is done or has failed. */
export async function highlight(code, name) {
  const language = languageOf(name);
  const source = code.textContent;
  if (!language || source.length > LONGEST) return;
  const parts = [];
  try {
    const { tokenize } = await import("../vendor/highlight/index.js");
    await tokenize(source, language, (text, type) => text && parts.push(type ? span(text, type) : text));
  } catch {
    return; // not loaded: the code is readable without
  }
  code.replaceChildren(...parts);
}

function span(text, type) {
  const made = document.createElement("span");
  made.className = `code-${type}`;
  made.textContent = text;
  return made;
}
