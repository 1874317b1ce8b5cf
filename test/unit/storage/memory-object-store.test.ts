import { objectStoreContract } from '../../contract/object-store.contract.js';
import { MemoryObjectStore } from '../../fake/memory-object-store.js';

objectStoreContract((body) => body(new MemoryObjectStore()));
