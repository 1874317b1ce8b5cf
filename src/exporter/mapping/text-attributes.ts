/** A span's attributes as far as they are texts, wherever they are read from. */
export interface TextAttributes {
  /** The attribute if it is a string. */
  text(name: string): string | undefined;
}
