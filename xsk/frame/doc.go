// Package frame keeps the books of a UMEM: which frame belongs to whom.
//
// A UMEM is cut into equal frames. Each has exactly one [Owner] at any moment, and the [Pool] knows it: moving a frame
// names the owner it must come from, so that a frame given back twice, or completed by the kernel without having been sent,
// is noticed instead of being handed to two. The package is pure: no memory is touched but the books.
package frame
