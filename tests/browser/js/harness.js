// How modules of the page are tested inside the browser: all files in one page, each `test` under
// the name that stands here (tests/browser/test_modules.py). Names are sentences, once per file.
//
//     import { equal, test } from "./harness.js";
//     import { parentOf } from "/static/core/ids.js";
//
//     test("a channel has no parent", () => equal(parentOf("channel.general"), null));
//
// Modules of the page lie below /static/, those of the tests below /js/.

const tests = new Map();
const ends = [];

/** What the running test has begun ends with it. */
export function after(end) {
  ends.push(end);
}

export function test(name, body) {
  if (tests.has(name)) throw new Error(`two tests are called "${name}"`);
  tests.set(name, body);
}

/** Runs all, one after the other; gives [name, what went wrong or null] for each. */
export async function run() {
  const results = [];
  for (const [name, body] of tests) {
    try {
      await body();
      results.push([name, null]);
    } catch (error) {
      results.push([name, error?.stack || String(error)]);
    }
    ends.splice(0).forEach((end) => end());
  }
  tests.clear();
  return results;
}

export function ok(value, message = `${show(value)} is not true`) {
  if (!value) throw new Error(message);
}

/** Equal all the way down: objects, arrays, maps, sets, dates; NaN equals NaN. */
export function equal(actual, expected, message = "") {
  if (same(actual, expected)) return;
  throw new Error(`${message}\n  is:        ${show(actual)}\n  should be: ${show(expected)}`);
}

/** `body` must throw, or its promise fail, with a message that has `words` in it. */
export async function fails(body, words = "") {
  let error;
  try {
    await body();
  } catch (thrown) {
    error = thrown;
  }
  ok(error !== undefined, "nothing was thrown");
  ok(String(error?.message ?? error).includes(words), `thrown was: ${error}`);
}

/** Waits until `condition` gives something true; gives that. For what browsers do in their time. */
export async function eventually(condition, message = "it never came true") {
  const end = performance.now() + 15_000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    ok(performance.now() < end, message);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function same(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return same(a.getTime(), b.getTime());
  if (a instanceof Map || a instanceof Set) return same([...a], [...b]);
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
  );
}

function show(value) {
  const plain = (key, each) => {
    if (each instanceof Map || each instanceof Set) return { [each.constructor.name]: [...each] };
    if (typeof each === "bigint" || typeof each === "function") return String(each);
    return each === undefined ? "undefined" : each;
  };
  return JSON.stringify(value, plain);
}
