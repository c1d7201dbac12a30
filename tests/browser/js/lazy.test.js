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

test("a part that could not be fetched says so and can be tried again", async () => {
  let tries = 0;
  const Part = lazy(async () => {
    if (!tries++) throw new TypeError("no network");
    return Hello;
  });
  const place = shown(Part);
  await eventually(() => place.querySelector("[role=alert]"));
  place.querySelector("button").click();
  await eventually(() => place.textContent === "hello ann");
});
