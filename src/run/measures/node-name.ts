/**
 * The name of a node, with its version where it has one: `orders.v2` of `model.shop.orders.v2`, whose `name` is `orders`, and
 * `adds_up.v2` of `unit_test.shop.orders.adds_up.v2`.
 */
export function nameOf({ uniqueId, name }: { readonly uniqueId: string; readonly name: string | null }): string | null {
  return name === null ? null : `${name}${partsOf(uniqueId, name)?.version ?? ''}`;
}

/**
 * The model that a unit test is of, with its version: its id names it, as in `unit_test.PROJECT.MODEL.NAME` and
 * `unit_test.PROJECT.MODEL.NAME.VERSION`. `null` for other ids.
 */
export function testedModelOf(uniqueId: string, name: string): string | null {
  const parts = uniqueId.startsWith('unit_test.') ? partsOf(uniqueId, name) : null;
  return parts === null || parts.model === '' ? null : `${parts.model}${parts.version}`;
}

/** Models and unit tests have versions; other ids end otherwise, those of tests with a hash. */
const VERSIONED = /^(?:model|unit_test)\./;

/** What stands before and after the name in an id, the version with its dot. */
function partsOf(uniqueId: string, name: string): { readonly model: string; readonly version: string } | null {
  if (!VERSIONED.test(uniqueId)) return null;
  const [, , ...rest] = uniqueId.split('.');
  const path = `.${rest.join('.')}`;
  if (path.endsWith(`.${name}`)) return { model: path.slice(1, -name.length - 1), version: '' };
  const at = path.lastIndexOf(`.${name}.v`);
  return at === -1 ? null : { model: path.slice(1, at), version: path.slice(at + name.length + 1) };
}
