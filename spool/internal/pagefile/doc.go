// Package pagefile reads the database files of bbolt (format version 2) without bbolt and without mapping them into
// memory, so that a damaged file can be judged and emptied of what is still readable.
//
// bbolt trusts its file: a page that lies about itself makes it panic, some of it in goroutines of its own, where nobody
// can recover, and a file that is shorter than it says ends the process with SIGBUS. This package trusts nothing.
//
// It promises, for any bytes whatever: no panic; memory that grows with the largest record and with one bit per page of
// the file; time that grows with the size of the file. What Verify finds no fault with, bbolt opens, reads and writes.
//
// It leaves out what only the owner of the records can know: whether a value is what was once stored. A flipped bit in a
// value, in a key so that the order still holds, in the length of a page's last value, or in the mark that tells a nested
// bucket from a value is not seen here; the records carry checksums of their own for that.
// Pages that belong to nothing are no fault either: they waste room and do no harm. Nothing is ever written.
//
// The three ways of reading, from the strictest to the one that finds most:
//
//   - Verify says whether the file may be handed to bbolt.
//   - Walk follows the tree from the roots and yields the entries of every page that can still be reached and read.
//   - Scan goes through the file page by page and yields the entries of everything that looks like a leaf page, which
//     also finds what a lost branch page or root has cut off, and much that was deleted long ago.
//
// A file must not be written to while it is read.
package pagefile
