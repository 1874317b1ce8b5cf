import type { Child } from 'hono/jsx';

/** A name and what it is, in a list of facts. @param isName whether it may be a long name, which is broken anywhere */
export function Fact(props: { readonly name: string; readonly isName?: boolean; readonly children?: Child }) {
  const { name, isName = false, children } = props;
  return (
    <div>
      <dt>{name}</dt>
      <dd {...(isName && { class: 'name' })}>{children}</dd>
    </div>
  );
}
