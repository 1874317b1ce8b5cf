/**
 * For who follows a link from a chat or a mail: their browser keeps the cookie back until a page of this server itself
 * leads on. It leads to `/arrive`, since a browser takes a page that leads to itself for the same visit.
 * @param to the path that they want
 */
export function ArrivalPage({ to }: { readonly to: string }) {
  const href = `/arrive?to=${encodeURIComponent(to)}`;
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="refresh" content={`0;url=${href}`} />
        <title>run-bridge</title>
      </head>
      <body>
        <a href={href}>Go on to run-bridge</a>
      </body>
    </html>
  );
}
