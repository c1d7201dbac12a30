import { equal, eventually, ok, test } from "./harness.js";
import { html, render } from "/static/core/ui.js";
import { Folded, LongText, TitledText } from "/static/parts/long-text.js";

function shown(what) {
  const place = document.createElement("div");
  document.body.append(place);
  render(what, place);
  return place;
}

const TEXT = "0123456789".repeat(50_000);

test("of a very long text the beginning is shown, and more on request", async () => {
  const place = shown(html`<${LongText} text=${TEXT} />`);
  const pre = place.querySelector("pre");
  equal(pre.textContent, TEXT.slice(0, 20_000));
  place.querySelector("button").click();
  await eventually(() => pre.textContent.length === 120_000);
  ok(TEXT.startsWith(pre.textContent));
});

test("the whole of a text can be reached, and then there is no more", async () => {
  const text = TEXT.slice(0, 20_001);
  const place = shown(html`<${LongText} text=${text} />`);
  place.querySelector("button").click();
  await eventually(() => !place.querySelector("button"));
  equal(place.querySelector("pre").textContent, text);
});

test("folded text is not there before it is opened", async () => {
  const place = shown(html`<${Folded} title="Prompt" text=${TEXT} />`);
  equal(place.querySelector("pre"), null);
  place.querySelector("details").open = true;
  await eventually(() => place.querySelector("pre"));
});

test("short text is shown at once, long text is folded", () => {
  equal(shown(html`<${TitledText} title="Result" text="short" />`).querySelector("details"), null);
  ok(shown(html`<${TitledText} title="Result" text=${TEXT} />`).querySelector("details"));
});

test("characters that turn the direction of text are shown", () => {
  equal(shown(html`<${LongText} text=${"a\u202eb"} />`).querySelector("pre").textContent, "a\\u202eb");
});
