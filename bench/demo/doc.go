// Package demo is the main experiment: one server, one load generator, two arms. It measures what the server can do, sweeps the
// offered load past it with and without credits, and steps the load to see how fast the tail comes back.
//
// Server and generator are processes of their own in a lab of two network namespaces, on real AF_XDP sockets, or on
// loopback over kernel UDP where there are no rights for more: package child. [Run] is their parent.
package demo
