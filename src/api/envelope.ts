/** What stands round every answer of the platform's API, errors too. */
export interface Envelope<Data> {
  readonly status: {
    /** The HTTP status again; clients read it from here. */
    readonly code: number;
    readonly is_success: boolean;
    readonly user_message: string;
    readonly developer_message: string | null;
  };
  readonly data: Data;
}

/** A list's response contains its filters and the total count. */
export interface ListEnvelope<Item> extends Envelope<readonly Item[]> {
  readonly extra: {
    readonly filters: Readonly<Record<string, unknown>> & { readonly limit: number; readonly offset: number };
    readonly order_by: string | null;
    readonly pagination: {
      /** Items in this answer. */
      readonly count: number;
      /** Items on all pages. */
      readonly total_count: number;
    };
  };
}

/** @param code the HTTP status; default 200 */
export function success<Data>(data: Data, code = 200): Envelope<Data> {
  return { status: { code, is_success: true, user_message: 'Success!', developer_message: '' }, data };
}

/** Returns one page of a list. */
export function successList<Item>(data: readonly Item[], extra: ListEnvelope<Item>['extra']): ListEnvelope<Item> {
  return { ...success(data), extra };
}

/** @param code the HTTP status @param userMessage what happened and what to do */
export function failure(code: number, userMessage: string): Envelope<null> {
  return { status: { code, is_success: false, user_message: userMessage, developer_message: null }, data: null };
}
