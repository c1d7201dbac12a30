import { match, search } from "/static/core/fuzzy.js";
import { equal, ok, test } from "./harness.js";

const names = (query, ...texts) => search(query, texts, (text) => text).map(({ item }) => item);

test("letters in order are found wherever they stand, words in any order, whatever case and accents", () => {
  equal(match("cnc", "concierge").at, [0, 2, 3]);
  equal([match("gn", "concierge"), match("zz", "concierge")], [null, null]);
  ok(match("unread next", "Next unread thread"));
  equal(match("next nothing", "Next unread thread"), null);
  equal([match("REMY", "Rémy").at, match("é", "cafe").at], [[0, 1, 2, 3], [3]]);
  ok(match("🦊", "the 🦊 fox").at.length > 0, "outside the basic plane");
});

test("the whole text counts most, then letters in a row and the beginning of a word", () => {
  equal(names("", "b", "a", "c"), ["b", "a", "c"], "an empty query keeps the order");
  for (const [query, best, ...others] of [
    ["li", "librarian", "polite", "the-list"],
    ["no", "release-notes", "casino"],
    ["cal", "calculator", "channel-archive-list"],
    ["ann", "ann", "anna", "hannah"],
  ]) equal(names(query, ...others, best)[0], best);
});
