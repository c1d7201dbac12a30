// All features, in the order in which they register. One more is one more line.
import composer from "./composer/feature.js";
import conversation from "./conversation/feature.js";
import threads from "./threads/feature.js";

export const FEATURES = [threads, conversation, composer];
