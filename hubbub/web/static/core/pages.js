// What the hub lists, page after page.
const PAGE = 100;

/**
 * The latest `most` of what an operation lists as `name`: its answer, with all of them. `key` is what
 * `before` refers to; others are arguments of the operation.
 */
export async function listed(client, operation, { name, key = "id", most, ...args }) {
  const found = [];
  for (;;) {
    const before = found.at(-1)?.[key];
    const limit = Math.min(PAGE, most - found.length);
    const page = await client.call(operation, { ...args, ...(before && { before }), limit });
    found.push(...page[name]);
    if (!page.more || found.length >= most) return { ...page, [name]: found };
  }
}
