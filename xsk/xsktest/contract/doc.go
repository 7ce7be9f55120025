// Package contract says what every implementation of a queue of AF_XDP must do, and holds an implementation to it on real veth pairs.
//
// Package xsk has more than this: several queues on one UMEM, sockets that are bound apart from their use. What is here is what a port
// needs of one queue, so another implementation can stand in its place. [Test] runs the cases, [TestApart] each in a process of its own.
package contract
