// Reads lists of the hub page by page.
const PAGE = 100;

/**
 * The latest `most` items that an operation lists as `name`: its result, with all pages joined. `key`
 * is the field that `before` refers to; the others are arguments of the operation.
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
