import { equal, fails, test } from "./harness.js";

test("equal values are equal all the way down", () => {
  equal({ a: [1, { b: new Set([2]) }], c: NaN }, { a: [1, { b: new Set([2]) }], c: NaN });
});

test("what differs in the depth is not equal", async () => {
  await fails(() => equal({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] }), "should be");
  await fails(() => equal({ a: 1 }, { a: 1, b: undefined }));
  await fails(() => equal([], {}));
  await fails(() => equal(new Map([[1, 2]]), new Map([[1, 3]])));
});

test("what does not throw does not pass for a failure", async () => {
  await fails(() => fails(() => {}), "nothing was thrown");
  await fails(() => fails(() => Promise.reject(new Error("one")), "another"), "thrown was");
});

