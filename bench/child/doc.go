// Package child is the two processes of an experiment, a server and a load generator, and the parent's typed view of them.
//
// [Server] and [Client] run in processes of their own and obey requests on their standard input (package lab's protocol);
// [Pair] starts both in a lab and makes these requests. They pin themselves to a CPU each, and poll without ever sleeping.
package child
