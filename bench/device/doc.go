// Command device has everything happen to a server's interface that can, at random, while the server is half loaded: its link goes down, its
// peer's does, it is deleted and made again, moved away and back, its program is detached, its MTU changes, and so does the number of its
// queues. Every request must have exactly one outcome, calls must be answered again within a second of each fault's end, and no frame may be missing.
//
// Server and client are endpoints of one process here, in two namespaces of its own, since a child cannot move its own interface.
package main
