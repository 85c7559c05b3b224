// Package torture holds no code but tests: they run the real binary under traffic, break everything around it in an order
// that a seed decides, and after each round hold what receivers saw against what clients were told and what Postern says.
//
// What it promises: every request of every client is remembered with its answer, and every request that a receiver reads
// with the answer it was given; after each round all of it is compared (see judge), so that nothing that was
// acknowledged can be missing, and nothing that was refused can come, without the run failing with the event's whole
// story, the seed and the round. The plan of a run follows from its seed alone; the moments at which things meet do not.
//
// What it leaves out: power cuts, since what a kill leaves in the page cache is not lost; more than one Postern on one
// file, which the lock's tests cover; and networks other than loopback.
//
// `make torture` runs the long form, `make soak` the one that ends where it began, and `go test` a short one.
package torture
