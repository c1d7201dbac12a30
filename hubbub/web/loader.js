// The start of the page's first bundle: modules by name, each run once, at its first import.
const runners = new Map(); // name -> function that runs the module
const modules = new Map(); // name -> its exports
const failed = new Map(); // name -> number of failed fetches

/** Add the modules of a bundle: {name: (exports, need, load, url) => void}. The first one with a name wins. */
export function define(bundle) {
  for (const [name, run] of Object.entries(bundle)) if (!runners.has(name)) runners.set(name, run);
}

/** A module's exports: `import … from`. */
function need(name) {
  if (!modules.has(name)) {
    const exports = {};
    runners.get(name)(exports, need, load, new URL(`../${name}`, import.meta.url).href);
    modules.set(name, exports);
  }
  return modules.get(name);
}

/** A module fetched on demand, with its imports: `import()`. */
async function load(name) {
  if (!runners.has(name)) {
    // By the standard, an address that failed once keeps failing for the lifetime of the page.
    const failures = failed.get(name) ?? 0;
    const address = failures ? `${name}?again=${failures}` : name;
    try {
      await import(new URL(address, import.meta.url).href);
    } catch (error) {
      failed.set(name, failures + 1);
      throw error;
    }
  }
  return need(name);
}
