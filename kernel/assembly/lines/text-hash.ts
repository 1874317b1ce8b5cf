/** A hash of a text and a number; reads up to 7 bytes beyond the text. */
@inline
export function hashOf(number: u32, at: usize, length: u32): u64 {
  let hash: u64 = (<u64>number << 32) | length;
  let done: u32 = 0;
  for (; done + 8 <= length; done += 8) hash = mixed(hash ^ load<u64>(at + done));
  const rest = (length - done) << 3;
  return rest == 0 ? hash : mixed(hash ^ (load<u64>(at + done) & ((<u64>1 << rest) - 1)));
}

@inline
function mixed(hash: u64): u64 {
  const product = hash * 0x9e3779b97f4a7c15;
  return product ^ (product >> 29);
}
