// The head of the page's first bundle: modules by name, each run once, when it is first imported.
const runners = new Map(); // name -> what runs it
const modules = new Map(); // name -> its exports
const failed = new Map(); // name -> how often it could not be fetched

/** Take in the modules of a bundle: {name: (exports, need, load, url) => void}. The first of a name stays. */
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

/** A module that is fetched when it is first needed, with what it imports: `import()`. */
async function load(name) {
  if (!runners.has(name)) {
    // By the standard an address that has failed once fails for as long as the page lives.
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
