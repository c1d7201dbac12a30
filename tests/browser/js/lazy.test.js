import { equal, eventually, test } from "./harness.js";
import { html, render } from "/static/core/ui.js";
import { lazy } from "/static/parts/lazy.js";

const Hello = ({ name }) => html`<b>hello ${name}</b>`;

function shown(Part) {
  const place = document.createElement("div");
  render(html`<${Part} name="ann" />`, place);
  return place;
}

test("a lazy part is fetched once, when it is first shown", async () => {
  let fetched = 0;
  const Part = lazy(async () => (fetched++, Hello));
  equal(fetched, 0);
  const place = shown(Part);
  await eventually(() => place.textContent === "hello ann");
  equal(shown(Part).textContent, "hello ann", "at once the second time");
  equal(fetched, 1);
});

test("a part that could not be fetched is tried again, ever more seldom, then by a click", async () => {
  const pauses = [];
  let tries = 0;
  const load = async () => {
    if (tries++ < 8) throw new TypeError("no network");
    return Hello;
  };
  const Part = lazy(load, null, async (ms) => pauses.push(ms));
  const place = shown(Part);
  await eventually(() => place.querySelector("[role=alert]"));
  equal(pauses, [500, 1000, 2000, 4000, 8000, 16000]);
  place.querySelector("button").click();
  await eventually(() => place.textContent === "hello ann");
  equal(pauses.slice(6), [500], "the pauses begin anew");
});

test("while a part is tried again it says so, and comes when it can", async () => {
  let mended = false;
  let goOn;
  const load = async () => {
    if (!mended) throw new TypeError("no network");
    return Hello;
  };
  const place = shown(lazy(load, null, () => new Promise((then) => (goOn = then))));
  await eventually(() => place.querySelector("[role=status]"));
  mended = true;
  goOn();
  await eventually(() => place.textContent === "hello ann");
});
