/** A line that was read to cells, by `LineScanner` or by the kernel; see `line-cells.ts`. */
export interface ScannedLine {
  /** Its cells are `cellCount` of these, from `firstCell` on. */
  readonly cells: Int32Array;
  readonly firstCell: number;
  readonly cellCount: number;
  readonly isEnd: boolean;
  /** Whether it stands for its span's start as well, which says nothing more. */
  readonly isJoined: boolean;
  /** Whether its node was seen with all that the run remembers of such spans. */
  readonly isNodeKnown: boolean;
  /** Places in `cells` of attributes that the run learns from: `nameCount` of these, from `firstName` on. */
  readonly nameCells: Int32Array;
  readonly firstName: number;
  readonly nameCount: number;
  /** Of the bytes that the line is in. */
  readonly view: DataView;
}
