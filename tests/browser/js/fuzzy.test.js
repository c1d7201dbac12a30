import { match, search } from "/static/core/fuzzy.js";
import { equal, ok, test } from "./harness.js";

const names = (query, ...texts) => search(query, texts, (text) => text).map(({ item }) => item);

test("letters in order are found, wherever they stand", () => {
  equal(match("cnc", "concierge").at, [0, 2, 3]);
});

test("letters out of order are not found", () => {
  equal(match("gn", "concierge"), null);
  equal(match("zz", "concierge"), null);
});

test("an empty query fits everything and keeps the order", () => {
  equal(names("", "b", "a", "c"), ["b", "a", "c"]);
});

test("the beginning of a word counts more than its inside", () => {
  equal(names("li", "polite", "librarian", "the-list")[0], "librarian");
  equal(names("no", "casino", "release-notes")[0], "release-notes");
});

test("letters that follow each other count more than scattered ones", () => {
  equal(names("cal", "channel-archive-list", "calculator")[0], "calculator");
});

test("the whole text counts most", () => {
  equal(names("ann", "anna", "hannah", "ann")[0], "ann");
});

test("case and accents do not matter, and positions stay right", () => {
  equal(match("REMY", "Rémy").at, [0, 1, 2, 3]);
  equal(match("é", "cafe").at, [3]);
});

test("words may come in any order", () => {
  ok(match("unread next", "Next unread thread"));
  equal(match("next nothing", "Next unread thread"), null);
});

test("a letter outside the basic plane is found", () => {
  equal(match("🦊", "the 🦊 fox").at.length > 0, true);
});
